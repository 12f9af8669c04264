"""The state of a session: all that it can be, and what turns one into another. Nothing else changes it.

Three things are told apart, and each has a table.

**Where its client is** (`Presence`). A session that was inherited is an *orphan* until its client comes and claims it.
A client that is out of sight is *away*, and the session's time runs, as an orphan's does.

**Whether its client is heard** (`Hearing`). A session that is to go back to the broker at which it began *stands
still*: its new home gets it as it is now. What the client says meanwhile is left out, and the session is *deaf* from
then on, because to hear what comes next would make a gap. It stays so if the hand-over comes to nothing, until the
client, which is sent away, has attached again and said everything.

**Whether its client keeps up** (`Lag`). A client that has kept others waiting for too long is *falling* behind: its
record says so, and the backups may not hold that record yet. Once they do, the client is *behind*, and is served out of
history until it has taken all that came from there (`lagging`).

An orphan never stands still, and a session that stands still is not claimed: its client is told to wait (`desk`).
"""

from enum import Enum, auto

__all__ = ["Hearing", "Lag", "Presence", "Turn", "next_hearing", "next_lag", "next_presence"]


class Presence(Enum):
    """Where the client is."""

    ORPHAN = auto()
    HERE = auto()
    AWAY = auto()


class Hearing(Enum):
    """Whether the client is heard."""

    OPEN = auto()
    STILL = auto()
    STILL_AND_DEAF = auto()
    DEAF = auto()


class Lag(Enum):
    """Whether the client keeps up."""

    LIVE = auto()
    FALLING = auto()
    BEHIND = auto()


class Turn(Enum):
    """What happens to a session."""

    CLAIMED = auto()
    """Its client attached."""
    LOST_SIGHT = auto()
    CAUGHT_SIGHT = auto()
    STANDS_STILL = auto()
    """It is about to be given back."""
    IGNORED = auto()
    """Its client said something that is left out."""
    GOES_ON = auto()
    """It is not given back after all."""
    OVERDUE = auto()
    """Its client has kept others waiting for too long."""
    SECURED = auto()
    """The backups know that its client lies behind."""
    ASKED_ABOUT = auto()
    """Its client has come, and what it lacks is looked for."""
    LACKS = auto()
    """It has to read out of history what its client lacks."""
    CAUGHT_UP = auto()
    """Its client has taken all that came out of history."""


_PRESENCE = {
    Presence.ORPHAN: {
        Turn.CLAIMED: Presence.HERE,
        Turn.LOST_SIGHT: Presence.ORPHAN,
        Turn.CAUGHT_SIGHT: Presence.ORPHAN,
    },
    Presence.HERE: {
        Turn.CLAIMED: Presence.HERE,
        Turn.LOST_SIGHT: Presence.AWAY,
        Turn.CAUGHT_SIGHT: Presence.HERE,
    },
    Presence.AWAY: {
        Turn.CLAIMED: Presence.HERE,
        Turn.LOST_SIGHT: Presence.AWAY,
        Turn.CAUGHT_SIGHT: Presence.HERE,
    },
}

_HEARING = {
    Hearing.OPEN: {
        Turn.CLAIMED: Hearing.OPEN,
        Turn.STANDS_STILL: Hearing.STILL,
    },
    Hearing.STILL: {
        Turn.STANDS_STILL: Hearing.STILL,
        Turn.IGNORED: Hearing.STILL_AND_DEAF,
        Turn.GOES_ON: Hearing.OPEN,
    },
    Hearing.STILL_AND_DEAF: {
        Turn.STANDS_STILL: Hearing.STILL_AND_DEAF,
        Turn.IGNORED: Hearing.STILL_AND_DEAF,
        Turn.GOES_ON: Hearing.DEAF,
    },
    Hearing.DEAF: {
        Turn.CLAIMED: Hearing.OPEN,
        Turn.STANDS_STILL: Hearing.STILL_AND_DEAF,
        Turn.IGNORED: Hearing.DEAF,
    },
}

_LAG = {
    Lag.LIVE: {
        Turn.OVERDUE: Lag.FALLING,
        Turn.ASKED_ABOUT: Lag.LIVE,
        Turn.LACKS: Lag.BEHIND,
    },
    Lag.FALLING: {
        Turn.SECURED: Lag.BEHIND,
        Turn.ASKED_ABOUT: Lag.LIVE,
    },
    Lag.BEHIND: {
        Turn.OVERDUE: Lag.BEHIND,
        Turn.ASKED_ABOUT: Lag.BEHIND,
        Turn.LACKS: Lag.BEHIND,
        Turn.CAUGHT_UP: Lag.LIVE,
    },
}


def next_presence(presence: Presence, turn: Turn) -> Presence:
    """Where the client is after this."""
    assert turn in _PRESENCE[presence], f"{turn.name} of a session that is {presence.name}"
    return _PRESENCE[presence][turn]


def next_hearing(hearing: Hearing, turn: Turn) -> Hearing:
    """Whether the client is heard after this."""
    assert turn in _HEARING[hearing], f"{turn.name} of a session that is {hearing.name}"
    return _HEARING[hearing][turn]


def next_lag(lag: Lag, turn: Turn) -> Lag:
    """Whether the client keeps up after this."""
    assert turn in _LAG[lag], f"{turn.name} of a session that is {lag.name}"
    return _LAG[lag][turn]
