"""The standard suite of small scenarios for `gapless sim explore`: combinations of operations and faults.

Each scenario has a network, an initial state, and actions that happen in any order. A line of words is an action: of a
client (`p pub 1`) or a fault (`crash b1`). Actions of one client, and faults of one broker or pair, keep their order.
"""

from dataclasses import dataclass, field

from gapless.simulator.scenario import (
    Action,
    AdvertiseAction,
    Client,
    Crash,
    Cut,
    Explore,
    Fault,
    Heal,
    Network,
    ProtocolChoice,
    PublishAction,
    Reply,
    Restart,
    Run,
    Scenario,
    SubscribeAction,
    Suspect,
    Trust,
    UnadvertiseAction,
    UnsubscribeAction,
)

__all__ = ["PROTOCOL", "SCOPES", "Scope", "scenario_of"]

PROTOCOL = "gapless"
FROM_MS = 1_000.0
"""The time for the initial operations: long enough for several final positions."""


@dataclass(frozen=True)
class Scope:
    """A small scenario."""

    brokers: int
    clients: dict[str, str]
    before: tuple[str, ...]
    race: tuple[str, ...]
    shape: str = "chain"
    replies: tuple[Reply, ...] = ()
    settle_ms: float = 4_000.0
    ticks: int = 1
    options: dict[str, object] = field(default_factory=dict)


P_AND_S = {"p": "b0", "s": "b2"}
READY = ("p adv a x > 0", "s sub s1 x > 0")

SCOPES: dict[str, Scope] = {
    "subscribe-while-a-broker-crashes": Scope(
        3, P_AND_S, ("p adv a x > 0",), ("s sub s1 x > 0", "p pub 1", "crash b1")
    ),
    "advertise-while-a-broker-crashes": Scope(
        3, P_AND_S, ("s sub s1 x > 0",), ("p adv a x > 0", "p pub 1", "crash b1")
    ),
    "publish-while-the-broker-between-crashes": Scope(3, P_AND_S, READY, ("p pub 1", "p pub 2", "crash b1")),
    "the-publishers-broker-crashes": Scope(3, P_AND_S, READY, ("p pub 1", "p pub 2", "crash b0")),
    "the-subscribers-broker-crashes": Scope(3, P_AND_S, READY, ("p pub 1", "p pub 2", "crash b2")),
    "a-representative-ends": Scope(
        3, {"p": "b0", "s": "b2", "t": "b2"}, READY, ("t sub t1 x > 1", "s unsub s1", "p pub 2")
    ),
    "a-representative-ends-behind-a-crash": Scope(
        3, {"p": "b0", "s": "b2", "t": "b2"}, READY, ("t sub t1 x > 1", "s unsub s1", "p pub 2", "crash b1")
    ),
    "two-subscribe-at-once": Scope(
        3, {"p": "b0", "s": "b2", "t": "b1"}, ("p adv a x > 0",), ("s sub s1 x > 0", "t sub t1 x > 1", "p pub 2")
    ),
    "two-subscribe-at-once-at-one-broker": Scope(
        3, {"p": "b0", "s": "b2", "t": "b2"}, ("p adv a x > 0",), ("s sub s1 x > 0", "t sub t1 x > 1", "p pub 2")
    ),
    "a-publisher-advertises-again": Scope(
        3, {"p": "b0", "q": "b1", "s": "b1"}, ("p adv a x > 0", "p pub 1", "p unadv a", "q sub q1 x > 0"),
        ("p adv c x > 0", "s sub s1 x > 0", "p pub 2"),
    ),
    "cause-and-effect-in-one-journal": Scope(
        3, {"z": "b0", "a": "b0", "s": "b2"}, ("z adv z1 x = 1", "a adv a1 x = 2", "a sub r1 x = 1", "s sub s1 x > 0"),
        ("z pub 1", "crash b1"), replies=(Reply("a", {"x": 2}, at_most=1),),
    ),
    "an-advertisement-ends": Scope(
        3, {"p": "b0", "q": "b1", "s": "b2"}, ("p adv a x > 0",),
        ("p unadv a", "q adv c x > 0", "q pub 1", "s sub s1 x > 0"),
    ),
    "the-publishers-broker-returns": Scope(3, P_AND_S, READY, ("p pub 1", "crash b0", "restart b0")),
    "the-broker-between-returns": Scope(
        3, P_AND_S, ("p adv a x > 0",), ("s sub s1 x > 0", "p pub 1", "crash b1", "restart b1")
    ),
    "a-live-broker-is-excluded": Scope(3, P_AND_S, READY, ("p pub 1", "suspect b1 b0", "suspect b2 b0")),
    "one-wrong-suspicion": Scope(3, P_AND_S, READY, ("p pub 1", "suspect b1 b0", "trust b1 b0")),
    "suspected-and-crashed": Scope(3, P_AND_S, READY, ("p pub 1", "suspect b2 b1", "trust b2 b1", "crash b1")),
    "two-handovers-side-by-side": Scope(
        5, {"p": "b1", "s": "b3"}, ("p adv a x > 0",), ("s sub s1 x > 0", "p pub 1", "crash b0", "crash b4")
    ),
    "the-centre-of-a-star-crashes": Scope(
        4, {"p": "b1", "s": "b2", "t": "b3"}, ("p adv a x > 0", "s sub s1 x > 0"),
        ("t sub t1 x > 0", "p pub 1", "crash b0"), shape="star",
    ),
    "a-connection-breaks": Scope(3, P_AND_S, READY, ("p pub 1", "cut b0 b1", "heal b0 b1")),
    "a-broker-is-cut-off": Scope(3, P_AND_S, READY, ("p pub 1", "cut b0 b1", "cut b0 b2")),
    "an-effect-and-its-cause": Scope(
        3, {"p": "b0", "r": "b1", "s": "b2"}, ("p adv a x = 1", "r adv c x = 2", "r sub r1 x = 1", "s sub s1 x > 0"),
        ("p pub 1", "crash b1"), replies=(Reply("r", {"x": 2}, at_most=1),),
    ),
    "a-durable-subscription-meets-a-crash": Scope(
        3, P_AND_S, ("p adv a x > 0",), ("s durable s1 x > 0", "p pub 1", "crash b1"), settle_ms=8_000.0
    ),
}  # fmt: skip


def scenario_of(name: str, switched_off: tuple[str, ...] = ()) -> Scenario:
    """Return the scope as a scenario."""
    scope = SCOPES[name]
    options: dict[str, object] = {"wave_ms": 500.0, **scope.options}
    if switched_off:
        options["switched_off"] = list(switched_off)
    actions: list[Action] = []
    faults: list[Fault] = []
    for number, line in enumerate(scope.before):
        _put(line, 10.0 * (number + 1), scope, actions, faults)
    for number, line in enumerate(scope.race):
        _put(line, FROM_MS + number, scope, actions, faults)
    return Scenario(
        network=Network(scope.shape, scope.brokers),  # type: ignore[arg-type]
        protocol=ProtocolChoice(PROTOCOL, options),
        name=name,
        run=Run(settle_ms=scope.settle_ms),
        explore=Explore(from_ms=FROM_MS, ticks=scope.ticks),
        clients=tuple(Client(client, broker) for client, broker in scope.clients.items()),
        actions=tuple(actions),
        replies=scope.replies,
        faults=tuple(faults),
    )


def _put(line: str, at: float, scope: Scope, actions: list[Action], faults: list[Fault]) -> None:
    who, what, *rest = line.split(" ")
    if who in scope.clients:
        actions.append(_action(who, what, rest, at))
    elif who == "crash":
        faults.append(Crash(at, what))
    elif who == "restart":
        faults.append(Restart(at, what))
    else:
        faults.append(_fault(who, what, rest[0], at))


def _fault(kind: str, one: str, other: str, at: float) -> Fault:
    if kind == "suspect":
        return Suspect(at, one, other)
    if kind == "trust":
        return Trust(at, one, other)
    return Cut(at, (one, other)) if kind == "cut" else Heal(at, (one, other))


def _action(client: str, what: str, rest: list[str], at: float) -> Action:
    if what == "pub":
        return PublishAction(at, client, {"x": int(rest[0])})
    name, wanted = rest[0], " ".join(rest[1:])
    if what == "adv":
        return AdvertiseAction(at, client, name, wanted)
    if what == "unadv":
        return UnadvertiseAction(at, client, name)
    if what == "unsub":
        return UnsubscribeAction(at, client, name)
    return SubscribeAction(at, client, name, wanted, name="durable" if what == "durable" else "")
