"""SRPT, a single root per topic, after Scribe: the baseline of the paper on VCube-PS (section IV).

**Guarantee**: within each topic, causal order and no gaps, while subscribers come and go. Brokers and links must not
fail.

**How it works.** A topic's name selects its root, one of the brokers. Publishers send their events to the root, which
sends them down one tree, the same for all: the hypercube's broadcast tree of the root over *all* brokers (`tree`),
pruned to the branches with subscribers. A broker on a path that has no subscribers itself is a forwarder.

**Why it is correct.** One root and FIFO links put the events of a topic into one order, and a broker that joins gets
all events from some point of that order on: see `broker`.

The paper says little about SRPT, and leaves open:

- *The tree.* The paper's figures match the root's broadcast tree: 449 messages for 256 subscribers of 1,024 brokers,
  10 children of the root, 512 brokers that forward nothing when all subscribe.
- *The publishers*: any client that subscribes or advertises, as in `vcube`, though the tree needs neither. The message
  goes directly to the root, one hop ("additional hop").
- *The publisher's own events* return to it down the tree, like all others.
- *Joining and leaving*: as in Scribe, from broker to parent until one is in the tree already; see `broker`.
- *Causal order* is not mentioned for SRPT. It needs no barriers.
- *Starting cuts.* A new subscriber knows that it has joined, but not the next number of each publisher: the cut exists,
  and becomes visible with the first event of each.
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
    summary="One root per topic: all its events pass one broker and one tree, as in Scribe; topics only; no faults",
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
