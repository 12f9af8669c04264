"""The protocols of Gapless, one package each. The registry finds the `PROTOCOL` of each package."""
