"""Programs for those who work on this project."""
