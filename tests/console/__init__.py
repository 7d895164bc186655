"""The console's pages, asked as a browser asks."""
