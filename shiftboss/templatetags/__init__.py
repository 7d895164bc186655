"""Template tags; Django looks for them here, in the app itself."""
