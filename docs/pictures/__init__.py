"""Generates the pictures of the documents: `python -m docs.pictures`.

A picture of a run shows the messages of a simulated scenario. A test compares the stored pictures with newly generated
ones.
"""
