"""Delta: reliable publish/subscribe that tolerates δ failed brokers in a row (paper 003).

**What it promises**: gapless FIFO delivery while subscribers and publishers come and go and up to δ = f brokers of any
neighbourhood fail: crash and come back with their memory or without, or stay away; links that break, and wrong
suspicions, count as failures of a broker. A subscription holds when every broker that can be reached knows it.

**How.** Each broker knows the tree up to δ + 1 away (`neighbourhood`), and opens sessions past those that have failed
(`sessions`). Subscriptions are told to everyone and confirmed from the far end on (`propagation`). Publications are
kept until all behind have confirmed them, and sent again over whatever session takes the place of one that is lost
(`forwarding`); sequence vectors tell the copies (`sequences`). Clients are leaves: they keep what they published until
it has reached everyone, and a broker that returns without memory gets the rest from its neighbours (`recovery`,
`attachments`).

**Why it is right.** *Nothing is lost*: somebody upstream keeps each publication until the clients behind have
acknowledged it, and sends it over any new session before what follows it. *Nothing comes twice or out of order*: see
`sequences`. *No gap*: let S start with event e of publisher p. Then e missed S nowhere (`forwarding`), so every broker
on e's way knew S when it processed e. Let e' be a later event of p that S wants. Whoever was on e's way still knows S
when it processes e': what it has learnt it forgets only with its memory, and then it processes nothing before those
around it have told it all. Whoever is on the way of e' and was not on that of e has been bypassed by e; it gets e' over
a session that began after that, and the session began with its sender telling it S. So each broker sends e' on, with S
not among those it has missed, and the confirmations see to it that it arrives.

Where the paper leaves a question, contradicts itself or cannot be followed:

- *Accepted subscriptions only* are used for forwarding in section IV. A broker on an island that waits for a
  confirmation would drop what others send it for a subscription that has started. Here a subscription is used as soon
  as it is known; the confirmations only say when it may start.
- *FIFO is not enough* (Property 2 of Lemma 1). What is sent again after a failure comes behind confirmations that were
  sent after it. Hence `Publication.missed`. (Repair `missed`.)
- *Publishers on an island.* Lemma 1 treats barriers only; a broker that can be reached by nobody while a subscription
  is told round it, and comes back, has not got it either. Here nobody sends publications over a session before being
  told what it lacks. (Repair `synchronise`; with it we found no run in which the tags alone prevented a gap.)
- *What to tag.* The text tags confirmations with barriers, Figure 3 with all partitions; the text tags publications
  that come from or from beyond a barrier, Figure 4 those published on it. Publications from beyond an island that have
  been flowing round it must not be tagged once they flow through it again. Here confirmations carry all partitions, by
  their last nodes, unless the node has confirmed by another way; publications are tagged by where they were published.
- *The notifier* replaces tags by others that a recovery came upon. A publisher behind a new partition may have been
  heard before, and must not fall silent in between. Here a notifier takes tags away and never adds any.
- *The summary in a recovery*, the highest numbers seen, skips a subscription with a lower number that became known
  later (or was confirmed later) than one with a higher. Here it lists names, and subscriptions need no vectors: the
  path that they carry shows who was bypassed, and the table shows duplicates.
- *Numbers after a restart* without memory are not comparable with those before; a late message from before must be
  taken for new, not for old. Vectors carry incarnations. What a publisher sends again after its broker's restart can be
  recognised only by the publisher's own number: the client stands first in the vector.
- *A copy that bypassed fewer* "may help resolve the situation" of a message that waits. Its numbers must not replace
  those of the first copy: it was processed upstream after messages that stand behind the first one here, and these
  would then look like duplicates. Only the fact that someone was not bypassed is taken over.
- *A duplicate that is not in the queue* is ignored in Figure 4, and its sender waits for ever. It is confirmed here.
- *Back to where it came from*: Figure 4 routes over all sessions that match. Not over those in the direction it came
  from.
- *Dead subscribers.* Section VIII lets messages for a failed edge broker go. Then its clients would have a gap when it
  returns. They are parked for a while (`patience_ms`); after that the subscription ends, and its client is told so.
- *Clients whose broker dies* are not treated. Here they wait for it, and after the same patience turn to a broker
  nearby: with what they published, as else it would be lost; without the subscriptions that had started, which end
  there.
- *Unsubscribing* is not treated. It is passed on, remembered, and told again to whoever still has the subscription.
- *Who recovers from whom.* Full recovery waits for all neighbours; two neighbours that restart together would wait for
  each other, and one that has no connection yet for nobody. See `recovery`. Subscriptions are told back to those around
  a source as well as to those on the way to it: else nobody could tell a broker that restarts beside a dead one.
- *Sessions that neither end uses* any more are closed; the paper keeps whatever was established.

Advertisements do not exist in the paper: they are accepted at once and change nothing. The starting cuts that traces
show come from the publishers' brokers, with the confirmations; a publisher that was cut off then has none.
"""

from gapless.protocol import ProtocolSpec
from gapless_papers.protocols.delta.broker import DeltaBroker
from gapless_papers.protocols.delta.client import DeltaClient
from gapless_papers.protocols.delta.messages import (
    Acknowledge,
    Attach,
    ClientOffers,
    ClientPublish,
    ClientSubscribe,
    ClientUnsubscribe,
    Detach,
)
from gapless_papers.protocols.delta.options import DeltaOptions

PROTOCOL = ProtocolSpec(
    name="delta",
    guarantee="gfd",
    summary="Delta: bypasses up to δ failed brokers in a row; a subscription waits for every broker's confirmation",
    options=DeltaOptions,
    broker=DeltaBroker,
    client=DeltaClient,
    confirms=True,
    client_messages=(Attach, Detach, ClientSubscribe, ClientUnsubscribe, ClientOffers, ClientPublish, Acknowledge),
    copes_with=frozenset({"crash", "restart", "cut", "suspicion"}),
)
