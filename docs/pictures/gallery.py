"""Lists every generated picture by its file name."""

from collections.abc import Callable

from docs.pictures.layers import draw_layers
from docs.pictures.micro_batch import draw_micro_batch
from docs.pictures.space_time import SpaceTime
from docs.pictures.start_on_another_node import draw_start_on_another_node

__all__ = ["PICTURES"]

EVENTS = {"ClientPublish": "event", "Publication": "event", "Pub": "event", "Delivery": "event"}
CUTS = {
    "ClientSubscribe": "subscription",
    "AddSubscription": "subscription",
    "CutAnswer": "marker: the starting cut",
    "Active": "marker: the starting cut",
}
COPIES = {"Hold": "copy of the event", "Held": "acknowledgement of the copy"}

_RUNS = {
    "cut": SpaceTime(
        "cut", "A subscription starts while its publisher speaks",
        ("ann", "b0", "b1", "b2", "bob"), {**CUTS, **EVENTS}, 295, 480,
    ),
    "advertisement": SpaceTime(
        "advertisement", "An event waits until its advertisement is stable",
        ("ann", "b0", "b1", "b2", "bob"),
        {"ClientAdvertise": "advertisement", "AddAdvertisement": "advertisement", "AddSubscription": "subscription",
         "AdvertisementAck": "answer: it is known behind me", "Stable": "answer: it is known behind me", **EVENTS},
        295, 480,
    ),
    "safe": SpaceTime(
        "advertisement", "An event is released when f + 1 brokers hold it",
        ("ann", "b0", "b1", "b2", "bob"),
        {**EVENTS, **COPIES, "Confirmed": "confirmed: publish() returns"},
        380, 480, 4.0,
    ),
    "covered": SpaceTime(
        "covered", "A covered subscription starts where its cover is",
        ("ann", "b0", "b1", "b2", "b3", "eve"),
        {**CUTS, **EVENTS, **COPIES}, 495, 580, 4.0,
    ),
    "causal": SpaceTime(
        "causal", "An answer stays behind what it answers",
        ("ann", "b0", "b1", "carl", "b2", "bob"), EVENTS, 395, 550,
    ),
    "gapless": SpaceTime(
        "recovery", "A broker dies; the others agree on the length of its journal, and hand over",
        ("ann", "b0", "b1", "b2", "b3", "bob"),
        {**EVENTS, "Prepare": "proposal to seal", "Promise": "promise: I hold no more of it",
         "Contribution": "contribution: what I know"}, 395, 940, 2.2,
    ),
    "locaps": SpaceTime(
        "locaps", "A covered subscription asks its pivot and the next f brokers",
        ("ann", "b0", "b1", "b2", "b3", "b4", "eve"),
        {**EVENTS, "ClientSubscribe": "subscription", "AddSubscription": "subscription",
         "PartialMarker": "partial marker", "Marker": "marker of the publisher"}, 735, 890, 3.0,
    ),
    "delta": SpaceTime(
        "delta", "A broker is bypassed, and what it had not confirmed is sent again",
        ("ann", "b0", "b1", "b2", "b3", "bob"),
        {**EVENTS, "Hello": "a new session begins", "ConfirmPublication": "confirmation"}, 395, 790, 2.2,
    ),
    "gryphon": SpaceTime(
        "gryphon", "Events flood until the path is stable",
        ("ann", "b0", "b1", "b2", "bob"),
        {"AddAdvertisement": "advertisement", "ClientAdvertise": "advertisement", **EVENTS,
         "AddSubscription": "subscription", "PathStable": "the path is stable", "Started": "the starting cut"},
        295, 430,
    ),
    "vcube": SpaceTime(
        "vcube", "A broadcast goes to members alone, and the next one waits for all acknowledgements",
        ("ann", "b0", "b1", "b2", "b3", "eve"), {**EVENTS, "Ack": "acknowledgement"}, 395, 490, 4.0,
    ),
    "srpt": SpaceTime(
        "srpt", "Everything on a topic goes through its root, b1",
        ("ann", "b0", "b1", "b2", "b3", "eve"), {**EVENTS, "ToRoot": "event for the root"}, 395, 470, 4.0,
    ),
    "epidemic": SpaceTime(
        "epidemic", "Two events get lost; the gap in the numbers shows it, and they are asked for",
        ("ann", "b0", "b1", "b2", "bob"),
        {**EVENTS, "PublisherPull": "who has 2 and 3?", "Retransmission": "event, sent again"}, 395, 630, 2.6,
    ),
}  # fmt: skip

PICTURES: dict[str, Callable[[], str]] = {
    "layers.svg": draw_layers,
    "micro-batch.svg": draw_micro_batch,
    "start-on-another-node.svg": draw_start_on_another_node,
    **{f"{name}.svg": run.draw for name, run in _RUNS.items()},
}
