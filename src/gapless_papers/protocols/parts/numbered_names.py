"""The network-wide names `client/number` of things that a client numbers. Only this module composes such names."""

__all__ = ["client_in", "name_of", "number_in"]


def name_of(client: str, number: int | str) -> str:
    """Return the name of a client's subscription or advertisement."""
    return f"{client}/{number}"


def client_in(name: str) -> str:
    """Return the client's part of a name. The client's own name may contain slashes."""
    return name.rpartition("/")[0]


def number_in(name: str) -> int:
    """Return the number at the end of a name."""
    return int(name.rpartition("/")[2])
