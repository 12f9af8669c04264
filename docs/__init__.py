"""The documents, and the code that draws their pictures."""
