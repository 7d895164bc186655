"""What a worker needs of a store: the same contract over SQL, over HTTP and in memory."""
