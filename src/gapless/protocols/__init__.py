"""The protocols of the product, one package each; the registry finds each package's `PROTOCOL`."""
