"""One module per page; views are thin."""
