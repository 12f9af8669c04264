"""A broker's disk: journals, history and entries in one SQLite file, committed off the event loop.

`open_store` opens a directory, or makes it. Nothing here knows what the blobs mean.
"""
