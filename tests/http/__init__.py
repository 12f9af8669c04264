"""The HTTP side of a broker."""
