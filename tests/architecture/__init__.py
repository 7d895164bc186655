"""Rules about the code as a whole."""
