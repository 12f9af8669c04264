"""Gryphon, as the paper on LoCaPS describes it: gapless FIFO from one stable path on, flooding where none is yet.

**What it promises**: gapless FIFO delivery while subscribers and publishers come and go, links lose and repeat
messages or break for a while, and anyone is suspected. Brokers must not fail.

**How.** Links are made whole first: numbers, acknowledgements, and a receiver that asks for what is missing
(`link_stream`). Above them, advertisements are flooded and subscriptions follow them to each publisher (`routing`). A
subscription starts with a publisher at a number of the publisher's, its logical clock:

- The publisher's broker has the subscription, and says its next number. The path is stable then: 2·d hops for a
  publisher d hops away. The nearest one suffices to start; each other follows when its own path is stable.
- Or the publisher is new, and the subscription was there before. Then it starts with the publisher's first event: over
  every link from which not all matching subscriptions have come yet, events flood.

That another subscription covers it makes a subscription no faster.

**Why it is right.** Let S be a subscription at broker b that starts at number n of publisher p, and e an event of p
from n on that S wants. Events of p come over one way and in order, so all that can go wrong is that some broker x
between p and b does not send e on towards b. *If p's broker said n:* S had passed x on its way there, before e left.
*If n came with an advertisement A:* A came to b when S was there and no other advertisement of p overlapped S. Let A'
be one that allows e and that the link from x towards b has answered. A' overlaps S, so it is A or came to b after A; S
was there, was sent towards p before b's answer to A', and came to x ahead of it: e matches S at x. If no such A' is
answered, e floods. Should p take back all that overlaps S and return, S leaves the way to p behind the events that
relied on it, and the second argument holds for the new advertisement.

Gapless *causal* delivery it does not give. S waits for the path to p2 when p1 advertises anew: S starts with p1's first
event, p2 sees that event and answers it before S is there, and S has missed the effect of what it got.

Where the paper leaves a question or cannot be followed:

- *What it says of Gryphon* is five sentences: gapless FIFO; one stable path suffices; events flood on paths that are
  not; logical clocks define the starting cut; the publisher must acknowledge, whatever covers. What follows is ours.
- *One of several paths.* On a tree there is one path to a publisher. A path that is not stable, where flooding has
  work to do, is one from a publisher that advertises after others have subscribed. Instead of holding its events
  back until all have answered (as `locaps` must), they leave at once and flood.
- *Logical clocks.* Gryphon's vectors say which subscriptions of each broker a publisher's broker has seen, so that
  brokers on other ways can tell that they are behind. With one way, the publisher's own number in the answer suffices.
- *Subscribers at leaves, publishers at the root*, the paper's evaluation asks for. Here both may be anywhere.
- *Faults* it does not treat. Gryphon is known for exactly-once delivery over links that lose, by asking again; that is
  `link_stream`. Its replicated brokers are not here: a crashed broker takes what it holds along, and parts the tree.
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
