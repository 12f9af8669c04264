"""The protocols of the product, one package each: its `PROTOCOL` is what the registry finds."""
