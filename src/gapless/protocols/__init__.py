"""Every protocol of the registry: one module or package each, found by its `PROTOCOL` attribute."""
