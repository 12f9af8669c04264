"""The pictures of the documents, drawn by code: `python -m docs.pictures` makes them all again.

What happens in a picture happened in the simulator: a scenario is run, and its messages are drawn. So a picture that is
not true any more is one that a test finds to be different.
"""
