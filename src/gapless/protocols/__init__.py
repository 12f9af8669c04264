"""The protocols of Gapless, one package each. The registry finds each package's `PROTOCOL`."""
