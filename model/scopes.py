"""Small scopes for the explorer: initial operations run in order, and threads are interleaved in all ways."""

from model.explore import Scope

CHAIN2, CHAIN3, CHAIN4, CHAIN5 = (None, 0), (None, 0, 1), (None, 0, 1, 2), (None, 0, 1, 2, 3)
STAR3, STAR4, STAR5, FORK = (None, 0, 0), (None, 0, 0, 0), (None, 0, 0, 0, 0), (None, 0, 1, 1)


def scope(
    parents: tuple[int | None, ...],
    homes: tuple[int, ...],
    setup: str,
    race: str,
    *,
    f: int = 1,
    idle: int = 1,
    refuge: str = "",
    fast: str = "",
) -> Scope:
    """Parse a scope: semicolons separate operations, bars separate threads. Examples of refuge: `c0=b1,b2 c1=b0`,
    and of fast: `b2=1000`.
    """
    return Scope(
        parents,
        homes,
        tuple(o.strip() for o in setup.split(";") if o.strip()),
        tuple(tuple(o.strip() for o in thread.split(";")) for thread in race.split("|") if thread),
        f,
        idle,
        {c: tuple(b.split(",")) for c, b in (pair.split("=") for pair in refuge.split())},
        {b: int(n) for b, n in (pair.split("=") for pair in fast.split())},
    )


SCOPES: dict[str, Scope] = {
    # publishing, subscribing and advertising across a crash
    "pubcrash": scope(CHAIN3, (2, 0), "c0 adv 0; c1 sub 0", "c0 pub | crash b2 | wave", refuge="c0=b0"),
    "subcrash": scope(CHAIN3, (0, 2), "c0 adv 0", "c1 sub 0 | crash b1 | c0 pub"),
    "advsub": scope(CHAIN3, (0, 2), "", "c0 adv 0; c0 pub | c1 sub 0 | crash b1"),
    "rootcrash": scope(CHAIN3, (0, 2), "c0 adv 0; c1 sub 0", "wave | c0 pub | crash b0", refuge="c0=b2"),
    "causal": scope(
        CHAIN3, (1, 0, 2), "c0 adv 0; c1 adv 1; c0 sub 1; c2 sub 0,1; c0 reply 1", "c1 pub | crash b1", refuge="c0=b0"
    ),
    # covering
    "cover": scope(FORK, (0, 2, 3), "c0 adv 0,1; c1 sub 0,1", "c1 unsub | c2 sub 0 | c0 pub; c0 pub"),
    "cover2": scope(CHAIN3, (0, 2, 2), "c0 adv 0,1", "c1 sub 0,1 | c2 sub 0 | c0 pub; c0 pub"),
    # moves
    "movecrash": scope(CHAIN3, (2, 0), "c0 adv 0; c1 sub 0", "c0 pub; c0 move b1 | crash b1", refuge="c0=b0"),
    "movecover": scope(CHAIN3, (2, 0, 0), "c0 adv 0,1; c1 sub 0,1; c0 pub", "c0 pub; c0 move b0 | c2 sub 0 | wave"),
    "moves": scope(CHAIN3, (0, 2), "c0 adv 0; c1 sub 0", "c0 pub; c0 move b2 | c1 move b0"),
    "movesub": scope(CHAIN3, (0, 2, 1), "c0 adv 0", "c0 pub; c0 move b2; c0 pub | c1 sub 0; c1 move b0"),
    "home": scope(STAR3, (1, 2), "c0 adv 0; c0 pub", "crash b1 | c1 sub 0 | c0 pub", refuge="c0=b0"),
    "resume": scope(CHAIN3, (0, 2, 1), "c2 adv 1", "c1 sub 0,1 | c0 adv 0; c0 pub | crash b2", refuge="c1=b0"),
    "resumed": scope(CHAIN3, (0, 2), "c0 adv 0; c1 sub 0", "c0 pub; c0 pub | crash b2 | wave", refuge="c1=b1"),
    "together": scope(
        STAR3, (0, 1, 2), "c0 adv 0; c1 adv 1; c1 sub 0; c2 sub 0; c2 sub 1; c1 reply 1", "c0 pub | c2 move b1 | wave"
    ),
    # crashes inside a handover, two handovers that share a member
    "double": scope(CHAIN5, (3, 0), "c0 adv 0; c1 sub 0", "c0 pub | crash b2 | inside b1", f=2, refuge="c0=b0"),
    "double5": scope(CHAIN5, (4, 0), "c0 adv 0; c1 sub 0", "c0 pub | crash b3 | inside b2", f=2, refuge="c0=b0"),
    "shared": scope(
        (None, 0, 1, 2, 3, 4), (0, 5, 2), "c0 adv 0; c2 sub 0", "crash b1 | crash b4 | c1 sub 0 | c0 pub", idle=0
    ),
    # false suspicion
    "zombie": scope(CHAIN3, (2, 0), "c0 adv 0; c1 sub 0", "suspect b2 | c0 pub", refuge="c0=b0"),
    "zombiesub": scope(CHAIN3, (2, 0), "", "suspect b2 | c0 sub 0 | c1 adv 0; c1 pub", refuge="c0=b1", fast="b2=50"),
    "zombierow": scope(
        STAR4, (3, 1), "c0 adv 0; c1 sub 0", "suspect b1 | c0 pub | wave", refuge="c1=b2", fast="b3=1000"
    ),
    "keeper": scope(CHAIN5, (4, 0), "c0 adv 0; c1 sub 0", "suspect b4 | suspect b3 | c0 pub", f=2, refuge="c0=b0"),
    "keeper2": scope(
        CHAIN5,
        (4, 0),
        "c0 adv 0; c1 sub 0",
        "suspect b4 b3,b2,b1; suspect b3 b4,b2,b1 | c0 pub",
        f=2,
        idle=0,
        refuge="c0=b0",
    ),
    "mixed": scope(
        CHAIN5, (4, 0), "c0 adv 0; c1 sub 0", "suspect b3 b4,b2,b1 | crash b4 | c0 pub", f=2, idle=0, refuge="c0=b0"
    ),
    "mixed2": scope(
        CHAIN5, (4, 0), "c0 adv 0; c1 sub 0", "suspect b4 b3,b2,b1 | crash b3 | c0 pub", f=2, idle=0, refuge="c0=b0"
    ),
    "mixed3": scope(
        STAR5, (4, 1), "c0 adv 0; c1 sub 0", "suspect b4 b0,b1,b2 | crash b0 | c0 pub", f=2, idle=0, refuge="c0=b1"
    ),
    "alone": scope(
        CHAIN5, (4,), "c0 adv 0", "suspect b4 b3; crash b3; c0 pub; suspect b4", f=2, idle=0, refuge="c0=b0"
    ),
    "mutual": scope(
        CHAIN4,
        (1, 2),
        "c0 adv 0; c1 sub 0",
        "suspect b1 b0,b2 | suspect b2 b1,b3 | c0 pub",
        idle=1,
        refuge="c0=b0 c1=b3",
    ),
    # returns
    "return": scope(CHAIN3, (0, 2, 1), "c0 adv 0; c0 pub; c1 sub 0", "crash b1 | back b1 | c0 pub", refuge="c2=b1,b2"),
    "returnsub": scope(CHAIN3, (0, 2), "c0 adv 0; c0 pub", "crash b1 | back b1 | c1 sub 0", idle=0),
    "returndie": scope(CHAIN3, (0, 2), "c0 adv 0; c1 sub 0", "crash b1; back b1; crash b1 | c0 pub", refuge="c0=b1,b2"),
    "voter": scope(
        CHAIN3, (0, 2), "c0 adv 0; c1 sub 0", "suspect b0 b1,b2 | crash b1; back b1 | c0 pub", refuge="c0=b2"
    ),
    "holder": scope(
        CHAIN3, (0, 2), "c0 adv 0; c1 sub 0", "c0 pub | crash b1; back b1 | crash b0", idle=1, refuge="c0=b2"
    ),
    "stale": scope(
        STAR4, (0, 3), "c0 adv 0; c1 sub 0", "suspect b0 b1,b2 | crash b3; back b3 | c0 pub", refuge="c0=b1 c1=b2"
    ),
    # partitions
    "cut1": scope(CHAIN3, (0, 2), "c0 adv 0; c1 sub 0", "cut b0; heal | c0 pub | c1 move b1", refuge="c0=b1"),
    "cut2": scope(CHAIN5, (0, 4), "c0 adv 0; c1 sub 0", "cut b0,b1; heal | c0 pub", f=2, refuge="c0=b1"),
    "cut3": scope(STAR4, (1, 2), "c0 adv 0; c1 sub 0", "cut b0,b3; heal | c0 pub", refuge="c0=b2"),
    "oneway": scope(CHAIN3, (0, 2), "c0 adv 0; c1 sub 0", "oneway b1; heal | c0 pub", refuge="c0=b1"),
    "oneway2": scope(CHAIN3, (2, 0), "c0 adv 0; c1 sub 0", "oneway b0,b1; heal | c0 pub", refuge="c0=b1"),
    # unadvertise
    "unadv": scope(CHAIN3, (0, 2, 1), "c0 adv 0; c2 adv 1", "c0 pub; c0 unadv | c1 sub 0,1 | c2 pub"),
    "unadv2": scope(STAR3, (1, 0, 2), "c0 adv 0; c1 adv 1; c1 sub 0; c1 reply 1", "c0 pub; c0 unadv | c2 sub 0,1"),
    "unadv3": scope(
        STAR3,
        (1, 0, 2, 2),
        "c0 adv 0; c1 adv 1; c1 sub 0; c1 reply 1; c2 sub 0",
        "c0 pub; c0 unadv | c3 sub 0,1",
        idle=0,
    ),
    "readv": scope(CHAIN3, (0, 2), "c0 adv 0; c0 pub", "c0 unadv; c0 adv 0; c0 pub | c1 sub 0"),
    "advlast": scope(CHAIN3, (0, 1, 1), "c0 adv 0; c0 pub; c0 unadv; c1 sub 0", "c0 adv 0 | c2 sub 0", idle=0),
    # clocks
    "fast": scope(
        CHAIN3,
        (2, 0, 1),
        "c0 adv 0; c2 adv 1; c2 sub 0; c1 sub 0,1; c2 reply 1",
        "c0 pub | wave | crash b1",
        refuge="c0=b0 c2=b0",
        fast="b2=1000",
    ),
    "fence": scope(
        FORK,
        (2, 3, 0),
        "c0 adv 0; c1 adv 1; c1 sub 0; c2 sub 0,1",
        "wave | c0 pub | crash b3 | c1 pub",
        refuge="c1=b0",
        fast="b2=1000",
    ),
    "rows": scope(STAR3, (1, 2), "c0 adv 0", "c0 pub | suspect b1 | wave", refuge="c0=b2", fast="b1=1000"),
    "homelast": scope(CHAIN3, (2, 0), "c0 adv 0; c0 pub", "crash b2 | c1 sub 0", refuge="c0=b0"),
    "begin": scope(
        CHAIN3, (0, 0, 2), "c0 adv 0; c1 adv 1; c1 sub 0; c0 pub; c0 unadv", "c2 sub 0,1; c2 move b1 | c1 pub"
    ),
    "seen": scope(
        FORK, (0, 2, 3), "c0 adv 0; c1 sub 0; c0 pub; wave; wave; wave", "crash b1; back b1 | c2 sub 0", idle=0
    ),
    "zombieclock": scope(
        CHAIN3, (2, 0), "jump b2 1000", "suspect b2; c0 sub 0 | c1 adv 0; c1 pub", idle=0, refuge="c0=b1"
    ),
}

SCRIPTS: dict[str, Scope] = {
    # One schedule each, which fails without one rule: KILLERS in tests/model.
    "fenced": scope(
        CHAIN3,
        (2, 0),
        "c0 adv 0; suspect b2 b0; block b0 b1; block b0,b1 b2; suspect b2 b1; unblock b0 b2; c0 pub; "
        "unblock b0 b1; heal",
        "",
        refuge="c0=b0",
    ),
    "stored": scope(
        CHAIN5,
        (0, 1, 4),
        "c0 adv 0; c1 adv 1; c2 sub 0,1; c1 sub 0; c1 reply 1; block b0 b2,b3,b4; c0 pub; "
        "suspect b0 b2,b3; block b2,b3,b4 b1; crash b0; block b1 b2,b3,b4; unblock b2,b3,b4 b1; crash b1; "
        "heal",
        "",
        f=2,
        refuge="c0=b4 c1=b2",
    ),
    "counted": scope(
        CHAIN5,
        (0, 4),
        "c0 adv 0; c1 sub 0; block b0 b1,b3,b4; c0 pub; block b2 b0; block b0 b2; crash b2; back b2; "
        "unblock b0 b1; block b1 b2,b3,b4; crash b0; crash b1; heal",
        "",
        f=2,
        refuge="c0=b4",
    ),
    "recovered": scope(
        CHAIN3,
        (0, 2),
        "c0 adv 0; c1 sub 0; block b0 b2; c0 pub; block b0 b1; crash b1; back b1; crash b0; heal",
        "",
        refuge="c0=b2",
    ),
    "announced": scope(
        STAR4,
        (-1, 1, 2),
        "block b0,b1,b2 b3; suspect b3 b0,b1; cut b0,b3; unblock b0 b3; c0 attach b3; c0 sub 0; c1 adv 0; "
        "c1 pub; wave; wave; wave; wave; heal",
        "",
        refuge="c0=b3",
    ),
    "pushed": scope(
        CHAIN5,
        (4, 1),
        "c0 adv 0; block b3 b0,b1,b4; suspect b4 b0,b1,b2; block b2 b3; suspect b4 b3; trust; wave; "
        "crash b3; heal; crash b0; c0 pub",
        "",
        f=2,
    ),
    "again": scope(
        CHAIN5,
        (0, 4),
        "c0 adv 0; c1 sub 0; block b0 b1,b2,b3,b4; c0 pub; block b2 b0; crash b2; back b2; unblock b0 b2; "
        "unblock b2 b0; c0 pub; unblock b0 b1; block b1 b2,b3,b4; crash b0; crash b1; heal",
        "",
        f=2,
        refuge="c0=b4",
    ),
    "sorted": scope(
        CHAIN3,
        (0, 0, 2),
        "c0 adv 0; c1 adv 1; c0 sub 1; c2 sub 0,1; c0 reply 1; block b1 b2; c1 pub; crash b1; heal",
        "",
    ),
    "sealsfirst": scope(
        CHAIN5,
        (4, 3, 0),
        "c0 adv 0; c1 adv 1; c2 sub 0; block b3 b0,b1,b2,b4; block b2 b3; c0 pub; block b1,b0 b3; "
        "crash b4; wave; wave; unblock b3 b1; unblock b1 b3; c1 pub; heal",
        "",
        f=2,
        refuge="c0=b0",
    ),
    "beginconfirmed": scope(
        CHAIN3,
        (2, 0),
        "block b2 b0,b1; block b0,b1 b2; jump b2 1000; suspect b2; c0 sub 0; c1 adv 0; c1 pub; heal",
        "",
        refuge="c0=b1",
    ),
    "unadv": scope(
        STAR3,
        (1, 0, 2, 2),
        "c0 adv 0; c1 adv 1; c1 sub 0; c1 reply 1; c2 sub 0; block b2 b0; c3 sub 0,1; c0 pub; c0 unadv; unblock b2 b0",
        "",
    ),
    "sealrows": scope(
        CHAIN4,
        (3, 0),
        "c0 adv 0; c1 sub 0; wave; block b0 b1; wave; block b2 b0; block b3 c0; c0 pub; crash b3; unblock b0 b1; heal",
        "",
        refuge="c0=b0",
        fast="b3=1000",
    ),
    "unsettled": scope(
        (None, 4, 1, 1, 0),
        (0, 2),
        "c0 adv 0; block b4 b1; suspect b4 b0,b1; block b1 b4; unblock b4 b1; block b4 b0,b1,b2,b3; "
        "unblock b1 b4; suspect b1 b2,b3; heal; c1 sub 0; c0 pub",
        "",
    ),
    "lonely": scope(CHAIN5, (4,), "c0 adv 0; suspect b4 b3; c0 pub; wave; wave; trust", "", f=2),
    "clocks": scope(
        STAR3,
        (0, 1),
        "c0 adv 0; c1 sub 0; jump b0 1000; wave; wave; block b0 b1,b2; block b1 b0,b2; block b2 b0,b1; "
        "suspect b0; suspect b1; suspect b2; heal; trust; block b0 c1; wave; wave; wave; c0 pub; wave; wave; "
        "unblock b0 c1",
        "",
    ),
}
