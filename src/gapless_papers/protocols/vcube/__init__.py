"""VCube-PS ("A Publish/Subscribe System Using Causal Broadcast Over Dynamically Built Spanning Trees"), repaired.

**Guarantee**: within each topic, causal order and no gaps, while brokers join and leave topics. Brokers and links must
not fail. Filters are topics: `topic = 'name'`. A power of two of brokers forms a hypercube; the edges of the overlay do
not matter, because every broker sends to every other directly.

**How it works.** A broker is a member of the topics that its clients subscribe to or advertise. Each message of a
member goes down its own tree, which consists of members alone (`hypercube`), and is acknowledged up the same tree; only
then it sends the next one (`broker`). An event names its direct causes, its barrier, and waits for them
(`causal_order`).

**Why it is correct.** Call the events that a broker has delivered, or permanently omitted, *settled*; this set is
closed: it contains the causes of all its events. A new member asks every broker, and starts with the union of what they
have settled when they learn of it, which is closed too. From then on each source sends it everything, so every
unsettled event will arrive. An event is delivered when its barrier is settled, and the barrier generates its past. So
no event is delivered before its cause, none is waited for in vain, and from the start on none is missing.
(`causal_order` has the details.)

Where the paper is incomplete or wrong; numbers are lines of Algorithm 2 unless another is named:

- *Forwarding* (51 to 53). Each broker on the path uses its own view of the members behind it. A new member is known to
  some before it knows any other, a member that has left learns nothing more, and news of a third may be in transit.
  Then whole sub-cubes miss a message, or, if it was an `Uns`, keep sending to the member that left. Here a message
  names the members to which its receiver has to forward it: bits, as many as the sub-cube has nodes. (Repair
  `receivers`.)
- *Where a new member starts* (78 to 80, Algorithm 3, 35): with the first message that it gets of each source. So a
  message with an earlier cause waits until the cause's publisher sends something else: forever, if it does not (p3 in
  the paper's own Figure 2). Also, an omitted cause hides its own causes, which may still be in transit. And messages
  that reach a new member before all sources know of it need not be followed by the next ones of their sources. Here the
  acknowledgements of a `Sub` carry what each broker has settled, and until the last one arrives all messages are
  buffered. (Repair `starting-cut`.)
- *Rejoining* (39 to 44, Algorithm 1, 5). A broker can subscribe again while its `Uns` is in flight, and then, when that
  is acknowledged, loses the events that the new subscription has received. Here a broker joins again after it has left.
  Messages for its earlier membership are recognised by their numbers.
- *Former members* that do not know of a new member whose `Sub` is in flight do not notify it either. Here former
  members
  answer, too, with the later clock; their events can still be causes, so they answer with what they have settled.
- *Membership in acknowledgements of events* (Algorithm 3, 57) is for sources that do not know a receiver. There are
  none here: a message goes to those that its source knows. (As printed it is also too late: a broker with children has
  entered the source into `first_rec` before it checks whether it is there.)
- *Numbers* (8) are given here when a broadcast starts, not when it is queued: so the last one says what was started.
- *The causal barrier* is not reset on leaving, and rightly, because clients remember. Here it contains at most one
  message of each source: a later one stands for those before it.
- *Publishing* requires membership (Algorithm 1, 21). Here an advertisement is enough to be a member.
- *Bounds.* `recs`, `msgs` and `br_queue` have none. Here a source is not acknowledged while too many messages wait at a
  receiver, and a client's pending publications and the topics of a broker are limited: see `options`.
- *The order of sending* to the children is left open. The largest sub-cube first is fastest, and fits the figures.
- *Slips*: line 14 of Algorithm 1 removes an entry with a clock that has advanced; lines 33, 61 and 67 disagree on the
  order of topic and number; line 58 sets the data of the wrong message; `t` in line 76 is the message's topic.
"""

from gapless.protocol import ClientPlace, ProtocolSpec
from gapless_papers.protocols.topics.client import TopicClient
from gapless_papers.protocols.topics.hypercube import refusal
from gapless_papers.protocols.vcube.broker import VcubeBroker
from gapless_papers.protocols.vcube.messages import ClientAdvertise, ClientEnd, ClientPublish, ClientSubscribe
from gapless_papers.protocols.vcube.options import VcubeOptions


def _client(place: ClientPlace, options: VcubeOptions) -> TopicClient:
    return TopicClient(place, options.client_window)


PROTOCOL = ProtocolSpec(
    name="vcube",
    guarantee="topic-causal",
    summary="VCube-PS: a separate tree for each publisher, over a hypercube; topics only; no broker faults",
    options=VcubeOptions,
    broker=VcubeBroker,
    client=_client,
    client_messages=(ClientAdvertise, ClientEnd, ClientPublish, ClientSubscribe),
    confirms=True,
    topics_only=True,
    refuses=refusal,
)
