"""How a life of a broker is named to clients, and in what brokers remember of clients: `b0/0`.

The one place that puts such names together and takes them apart.
"""

from typing import NewType, TypeGuard

__all__ = ["LIFE_STEP", "NOWHERE", "Home", "Status", "broker_of", "is_life", "name_life", "parse_life"]

Home = NewType("Home", str)
"""The name of a life, as that of a session's home; no name of a broker."""
Status = NewType("Status", int)
"""A life and its phase in one number: `members.status` puts it together and takes it apart."""

NOWHERE = Home("")
"""No life at all."""

LIFE_STEP = 1_000
"""A restart outranks any number of exclusions of the life before."""
DIGITS_MAX = 19


def name_life(broker: str, life: int) -> Home:
    """The name of a life."""
    return Home(f"{broker}/{life}")


def broker_of(name: Home) -> str:
    """Whose life it is; nobody's if the name is empty."""
    return name.rpartition("/")[0]


def parse_life(name: Home) -> tuple[str, int]:
    """The broker and the number of its life."""
    broker, _, life = name.rpartition("/")
    return broker, int(life)


def is_life(name: str) -> TypeGuard[Home]:
    """Whether it is such a name: clients may say anything."""
    broker, _, life = name.rpartition("/")
    return bool(broker) and len(life) <= DIGITS_MAX and life.isascii() and life.isdigit()
