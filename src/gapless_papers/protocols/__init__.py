"""The protocols of the papers, one package each; the registry finds each package's `PROTOCOL`."""
