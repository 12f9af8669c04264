"""VCube-PS ("A Publish/Subscribe System Using Causal Broadcast Over Dynamically Built Spanning Trees"), made to hold.

**What it promises**: within each topic causal order and no gaps, while brokers join and leave topics. Brokers and links
must not fail. Filters are topics: `topic = 'name'`. A power of two of brokers forms a hypercube; the edges of the
overlay do not matter, for every broker sends to every other directly.

**How.** A broker is a member of the topics that its clients subscribe to or advertise. Whatever a member has to say
goes down a tree of its own, made of the members alone (`hypercube`), and is acknowledged up the same tree; only then it
says the next (`broker`). An event names its direct causes, its barrier, and waits for them (`causal_order`).

**Why it is right.** Call what a broker has delivered, or left out for ever, *settled*; it is a closed set: it holds the
causes of all that it holds. A new member asks every broker, and starts with the union of what they have settled when
they hear of it, which is closed too. From then on each source sends it everything, so what is not settled will come.
It is delivered when its barrier is settled, and that generates its past. So nothing is delivered before its cause,
nothing is waited for in vain, and from the start on nothing is missing. (`causal_order` has the details.)

Where the paper leaves a question or cannot be followed; numbers are lines of Algorithm 2 unless another is named:

- *Who passes on to whom* (51 to 53). Each broker on the way asks its own view who lies behind it. A new member is known
  to some before it knows anyone, a member that has left learns nothing more, and news of a third may still be on
  its way: then whole sub-cubes miss a message, and where it was an `Uns`, keep sending to the one who left. Here a
  message names those that its receiver has to pass it on to: bits, as many as the sub-cube has nodes. (Repair
  `receivers`.)
- *Where a new member starts* (78 to 80, Algorithm 3, 35). With the first message that it gets of each source. So a
  message whose cause was published before waits until the cause's publisher says something else: for ever, if it does
  not (p3 in the paper's own Figure 2). And a cause that was left out hides its own causes, which may still be on their
  way. And what reaches a new member while some have not heard of it need not be followed by the next of its source.
  Here the acknowledgements of a `Sub` carry what each broker has settled, and until the last is there all is
  kept. (Repair `starting-cut`.)
- *Coming back* (39 to 44, Algorithm 1, 5). One may subscribe again while the `Uns` is under way, and then loses, when
  it is acknowledged, what the new subscription has received. Here a broker joins again when it has left. Messages for
  its earlier stay are recognised by their numbers.
- *Who has left* and does not know of the new member whose `Sub` is under way does not tell it either. Here former
  members answer, too, with the later clock; their events may still be causes, so they answer what they have settled.
- *Membership in acknowledgements of events* (Algorithm 3, 57) is for sources that do not know a receiver. There are
  none here: a message goes to those that its source knows. (As printed it also comes too late: a broker that has
  children has entered the source into `first_rec` before it asks whether it is there.)
- *Numbers* (8) are given here when a broadcast starts, not when it is queued: so the last one says what was started.
- *The causal barrier* is not reset on leaving, and rightly, for clients remember. Here it holds one message of each
  source at most: a later one stands for those before it.
- *Publishing* takes membership (Algorithm 1, 21). Here to advertise is enough to be a member.
- *Bounds.* `recs`, `msgs` and `br_queue` have none. Here a source is not acknowledged while too much waits at a
  receiver, a client's publications on their way are limited, and so are the topics of a broker: see `options`.
- *The order of sending* to the children is left open. The largest sub-cube first is fastest, and fits the figures.
- *Slips*: line 14 of Algorithm 1 removes an entry with a clock that has moved on; lines 33, 61 and 67 disagree on the
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
    summary="VCube-PS: a tree of its own for each publisher, over a hypercube; topics only; no broker faults",
    options=VcubeOptions,
    broker=VcubeBroker,
    client=_client,
    client_messages=(ClientAdvertise, ClientEnd, ClientPublish, ClientSubscribe),
    confirms=True,
    topics_only=True,
    refuses=refusal,
)
