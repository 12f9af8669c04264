"""SRPT, a single root per topic: what the paper on VCube-PS compares it with (section IV), after Scribe.

**What it promises**: within each topic causal order and no gaps, while subscribers come and go. Brokers and links must
not fail.

**How.** A topic's name chooses its root, one of the brokers. Publishers send their events to the root, which sends them
down one tree, the same for all: the hypercube's broadcast tree of the root over *all* brokers (`tree`), as far as it
leads to subscribers. A broker on the way that has none itself passes on what nobody there wants: a forwarder.

**Why it is right.** One root and FIFO links put the events of a topic into one order, and a broker that joins gets
everything from some place of it on: see `broker`.

The paper says little of it. What it leaves open:

- *Which tree.* Its figures are those of the root's broadcast tree: 449 messages for 256 subscribers of 1,024 brokers,
  10 children of the root, 512 brokers that pass nothing on when all subscribe.
- *Who may publish*: whoever subscribes or advertises, as in `vcube`, though the tree needs to know of neither. The
  message goes straight to the root, one hop ("additional hop").
- *The publisher's own events* come back to it down the tree, like everyone else's.
- *Joining and leaving*: as in Scribe, from broker to parent until one is in the tree already; see `broker`.
- *Causal order* is not mentioned for SRPT. It needs no barriers.
- *Starting cuts.* A new subscriber knows that it has joined, not which event of each publisher is the next: the cut
  exists, and shows with the first event of each.
"""

from gapless.protocol import ClientPlace, ProtocolSpec
from gapless_papers.protocols.srpt.broker import SrptBroker
from gapless_papers.protocols.srpt.messages import Join, Joined, Leave, Pub, ToRoot
from gapless_papers.protocols.srpt.options import SrptOptions
from gapless_papers.protocols.topics.client import TopicClient
from gapless_papers.protocols.topics.hypercube import refusal
from gapless_papers.protocols.topics.messages import (
    ClientAdvertise,
    ClientEnd,
    ClientPublish,
    ClientSubscribe,
    Delivery,
    Ready,
)  # fmt: skip


def _client(place: ClientPlace, options: SrptOptions) -> TopicClient:
    return TopicClient(place, None)


PROTOCOL = ProtocolSpec(
    name="srpt",
    guarantee="topic-causal",
    summary="Single root per topic: everything through one broker and one tree, as in Scribe; topics only; no faults",
    options=SrptOptions,
    broker=SrptBroker,
    client=_client,
    messages=(
        Join, Joined, Leave, Pub, ToRoot,
        ClientAdvertise, ClientEnd, ClientPublish, ClientSubscribe, Delivery, Ready,
    ),
    client_messages=(ClientAdvertise, ClientEnd, ClientPublish, ClientSubscribe),
    topics_only=True,
    refuses=refusal,
)  # fmt: skip
