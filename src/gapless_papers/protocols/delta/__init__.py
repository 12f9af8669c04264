"""Delta: reliable publish/subscribe that tolerates δ failed brokers in a row (paper 003).

**Guarantee**: gapless FIFO delivery while subscribers and publishers come and go and up to δ = f brokers of any
neighbourhood fail. A failed broker crashes and returns with or without its memory, or never returns; broken links and
false suspicions count as failures of a broker. A subscription is active when every reachable broker knows it.

**How it works.** Each broker knows the tree up to distance δ + 1 (`neighbourhood`), and opens sessions past failed
brokers (`sessions`). Subscriptions are propagated to all brokers and confirmed from the far end back (`propagation`). A
broker keeps each publication until all brokers downstream have confirmed it, and sends it again over the session that
replaces a lost one (`forwarding`); sequence vectors detect the copies (`sequences`). Clients are leaves: they keep each
publication until all subscribers have it, and a broker that returns without memory gets the rest from its neighbours
(`recovery`, `attachments`).

**Why it is correct.** *No losses*: a broker upstream keeps each publication until the clients downstream have
acknowledged it, and sends it over any new session before later publications. *No duplicates, no reordering*: see
`sequences`. *No gap*: let S start with event e of publisher p. Then no broker on e's path missed S (`forwarding`), so
every broker on that path knew S when it processed e. Let e' be a later event of p that S wants. A broker on e's path
still knows S when it processes e': it forgets S only if it loses its memory, and then it processes nothing before its
neighbours have restored it. A broker on the path of e' but not on that of e was bypassed by e; it gets e' over a
session that began later, and at the beginning of that session the sender sent it S. So each broker forwards e', S
is not among the subscriptions that e' missed, and the confirmations ensure that e' arrives.

Where the paper is incomplete, contradictory, or wrong:

- *Only accepted subscriptions* are used for forwarding in section IV. A broker on an island that waits for a
  confirmation would drop events for a subscription that has started. Here a subscription is used as soon as it is
  known; confirmations only determine when it can start.
- *FIFO is not enough* (Property 2 of Lemma 1). Publications that are sent again after a failure arrive after
  confirmations that were sent later. Hence `Publication.missed`. (Repair `missed`.)
- *Publishers on an island.* Lemma 1 treats barriers only. A broker that is unreachable while a subscription is
  propagated past it, and then returns, has not got the subscription either. Here no broker sends publications over a
  session before the peer has sent it the subscriptions it lacks. (Repair `synchronise`; with it, in no run did
  the tags alone prevent a gap.)
- *What to tag.* The text tags confirmations with barriers, Figure 3 with all partitions; the text tags publications
  that come from or from beyond a barrier, Figure 4 those published on it. Publications from beyond an island that have
  bypassed it must not be tagged once they flow through it again. Here confirmations carry all partitions, by
  their last nodes, unless the node has confirmed by another path; publications are tagged by where they were published.
- *The notifier* replaces tags by others that a recovery found. A publisher behind a new partition may have been
  received before, and must not be interrupted. Here a notifier removes tags and never adds any.
- *The summary in a recovery*, the highest numbers seen, skips a subscription with a lower number that became known
  later (or was confirmed later) than one with a higher. Here it lists names, and subscriptions need no vectors: the
  path that they carry shows which brokers were bypassed, and the table shows duplicates.
- *Numbers after a restart* without memory are not comparable with earlier ones; a late message from before the restart
  must not be mistaken for a duplicate. Vectors carry incarnations. A publication that is sent again after its broker's
  restart can be recognised only by the publisher's own number, so the client is the first entry of the vector.
- *A copy that bypassed fewer brokers* "may help resolve the situation" of a message that waits. Its numbers must not
  replace those of the first copy: it was processed upstream after messages that follow the first one here, and these
  would then look like duplicates. The only thing taken from it is which brokers were not bypassed.
- *A duplicate that is not in the queue* is ignored in Figure 4, and its sender waits forever. It is confirmed here.
- *Back to the sender*: Figure 4 routes over all sessions that match. Here, not over those in the direction of arrival.
- *Dead subscribers.* Section VIII drops messages for a failed edge broker, so that its clients have a gap when it
  returns. Here they are parked for `patience_ms`; after that the subscription ends, and its client is notified.
- *Clients whose broker dies* are not treated. Here they wait for it, and after `patience_ms` attach to a broker nearby.
  They take their publications along, which would be lost otherwise; subscriptions that had started end.
- *Unsubscribing* is not treated. It is forwarded, remembered, and repeated to brokers that still have the subscription.
- *Deadlocks in recovery.* Full recovery waits for all neighbours; two neighbours that restart together would wait for
  each other, and one without a connection would not wait at all. See `recovery`. Subscriptions are reported back to the
  brokers around a source as well as to those on the path to it: otherwise nothing could restore a broker that restarts
  next to a dead one.
- *Sessions that neither end uses* are closed; the paper keeps every established session.

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
