"""The protocols of the papers, one package each: its `PROTOCOL` is what the registry finds."""
