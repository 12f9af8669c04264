"""Gryphon, as the paper on LoCaPS describes it: gapless FIFO after one stable path, flooding where there is none yet.

**Guarantee**: gapless FIFO delivery while subscribers and publishers come and go, links lose and duplicate messages or
break temporarily, and with any false suspicions. Brokers must not fail.

**How it works.** Links are made reliable first: numbers, acknowledgements, and a receiver that requests missing packets
(`link_stream`). Above them, advertisements are flooded and subscriptions follow them to each publisher (`routing`). A
subscription starts with a publisher at one of the publisher's numbers, its logical clock:

- The publisher's broker has the subscription, and reports its next number. The path is stable then: 2·d hops for a
  publisher d hops away. The nearest one suffices to start; each other follows when its own path is stable.
- Or the publisher is new, and the subscription is older. Then it starts with the publisher's first event: events flood
  over every link from which matching subscriptions may still be missing.

A covering subscription does not make a subscription faster.

**Why it is correct.** Let S be a subscription at broker b that starts at number n of publisher p, and e an event of p
from n on that S wants. Events of p arrive over one path and in order, so the only possible failure is that some broker
x between p and b does not forward e towards b. *If p's broker reported n:* S had passed x on its way there, before e
left. *If n came with an advertisement A:* A came to b when S was there and no other advertisement of p overlapped S.
Let A' be one that allows e and that the link from x towards b has answered. A' overlaps S, so it is A or came to b
after A; S was there, was sent towards p before b's answer to A', and came to x ahead of it: e matches S at x. If no
such A' is answered, e floods. If p withdraws all advertisements that overlap S and returns, S leaves the path to p
behind the events that relied on it, and the second argument holds for the new advertisement.

It does not provide gapless *causal* delivery. If p1 advertises again, S waits for the path to p2: S starts with p1's
first event, p2 receives that event and answers it before S arrives, and S has missed the effect of an event it got.

Where the paper is incomplete or wrong:

- *Its description of Gryphon* is five sentences: gapless FIFO; one stable path suffices; events flood on paths that are
  not stable; logical clocks define the starting cut; the publisher must acknowledge, even with a covering
  subscription. The rest of this design is ours.
- *One of several paths.* On a tree there is one path to a publisher. A path that is not stable, on which events flood,
  is one from a publisher that advertises after others have subscribed. Instead of holding its events back until all
  brokers have answered (as `locaps` must), they leave at once and flood.
- *Logical clocks.* Gryphon's vectors say which subscriptions of each broker a publisher's broker has seen, so that
  brokers on other paths can detect that they lag. With one path, the publisher's own number in the answer suffices.
- *Subscribers at leaves, publishers at the root* are required by the paper's evaluation. Here both can be anywhere.
- *Faults* are not treated. Gryphon is known for exactly-once delivery over lossy links, by retransmission; that is
  `link_stream`. Its replicated brokers are not here: a crashed broker loses its state and splits the tree.
"""

from gapless.protocol import ProtocolSpec
from gapless_papers.protocols.gryphon.broker import GryphonBroker
from gapless_papers.protocols.gryphon.client import GryphonClient
from gapless_papers.protocols.gryphon.messages import Acknowledgement, Missing, Packet
from gapless_papers.protocols.gryphon.options import GryphonOptions

PROTOCOL = ProtocolSpec(
    name="gryphon",
    guarantee="gfd",
    summary="Gryphon: gapless FIFO from one stable path on, covered or not; floods where none is stable yet",
    options=GryphonOptions,
    broker=GryphonBroker,
    client=GryphonClient,
    client_messages=(Packet, Acknowledgement, Missing),
    copes_with=frozenset({"cut", "suspicion", "loss", "duplication"}),
)
