"""What a client numbers has a name in the network: `client/number`. The one place that puts such names together."""

__all__ = ["client_in", "name_of", "number_in"]


def name_of(client: str, number: int | str) -> str:
    """The name of a client's subscription or advertisement."""
    return f"{client}/{number}"


def client_in(name: str) -> str:
    """Whose it is. A client's own name may have a slash in it, a number has none."""
    return name.rpartition("/")[0]


def number_in(name: str) -> int:
    """Which of its client's it is."""
    return int(name.rpartition("/")[2])
