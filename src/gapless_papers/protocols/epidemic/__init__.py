"""Gossip, after "Introducing Reliability in Content-Based Publish-Subscribe through Epidemic Algorithms".

**Guarantee**: no unwanted events and no duplicates. Beyond that, best effort: events lost on lossy links, or while the
tree is rearranged, are recovered with a probability that depends on buffers, gossip interval and fan-out.

**How it works.** Subscriptions are forwarded over an unrooted tree (`subscription_table`, `link`); events go to every
broker behind which a subscription matches. Brokers cache the events they forward (`cache`). Then, by option `recovery`:

- `push`: each broker periodically sends the subscribers of a pattern the names of its cached events; they request those
  they lack.
- `subscriber-pull`: an event carries a number for each pattern that it matches (`numbering`), so a subscriber detects a
  gap (`losses`) and asks other subscribers of the same pattern.
- `publisher-pull`: it asks the brokers on the path of the latest event from the same source.
- `combined-pull`: a random mix of both. `none`: the bare tree.

**Why it is correct.** *No unwanted events:* the subscriber's broker matches every event itself. *No duplicates:*
received events are remembered, and forgotten ones count as received (`received`). *Best effort:* while an event is in a
cache that gossip can reach, each round finds it with some probability q > 0, so it is missing for k rounds with
probability (1 − q)^k, and the cache keeps it for a time that grows with its size. Pull adds a condition: the loss must
be detected, by a later event of the same source and pattern.

Where the paper is incomplete or wrong:

- *Lost subscriptions.* It treats lost events only; on the same links, a lost subscription would block a path forever.
  Here a neighbour confirms subscriptions, and they are repeated until it does (`link`).
- *Changes of the tree* are left to earlier work. Here the ends of a removed link stop using it at once, but for
  `hold_ms` they do not withdraw the subscriptions behind it; the ends of a new link exchange everything they know.
- *The first number* that a subscriber expects is not specified. If it were 1, a late subscriber would pull the whole
  past. Here the first event that arrives sets it, so earlier losses are never detected: over 10 links with 20 % loss,
  eight events on average. Push has no such limit, but delivers events from before a subscription.
- *Patterns that the source does not know yet* have no number in its events. Pull cannot detect these losses, push can.
- *The size of LostBuffer.* Entries leave it by recovery only. Here a missing event is given up after `give_up_ms`, and
  the oldest if there are more than `lost`.
- *isReceived* is not specified; an exact one grows without bound. See `received` for a bounded one without duplicates.
- *Which pattern, which source.* Figures 2 and 3 draw one of all, so that most rounds would have nothing to send. Here
  only those are drawn for which something is cached (push) or missing (pull), and which have another subscriber.
- *Which broker answers a pull.* The text says the first broker on the path that has the event; Figure 3 forwards the
  whole digest, so that every broker that has it answers. Here found events are removed from the digest, and an empty
  digest ends there.
- *P_forward.* Figure 2 applies it at every broker, Figure 3 at subscribers only, without a reason. Kept as they are.
- *Recovered events* are for the broker that asked; the paper does not say whether they are forwarded. Brokers behind it
  recover them themselves; if the event still arrives along the tree, it is forwarded then.
- *Combining the pulls* is not specified. Here each round draws its direction, by `publisher_probability`, and takes the
  other one if the first leads nowhere.
- *Routes* may no longer be paths of the tree. Then the pull is sent to the next broker on the route directly, because
  unicast is assumed anyway. Events that arrived by gossip say nothing about paths.
- *The source* is a broker, since the paper has no clients. Here its name includes its incarnation, because a broker
  that
  restarts without memory begins numbering again. Push names events by their publisher and its number.
- *Acknowledgement implosion* is called unlikely because two subscribers of different patterns seldom detect a loss at
  the same time. Two of the same pattern behind the same lossy link do, each time.
- *Push and patterns.* It claims that the number of patterns an event matches slows push down, not the total number of
  patterns. We find the opposite: with more patterns in a broker's cache, each is drawn less often; and an event that
  matches more of them is cached by more brokers. See `benchmarks/epidemic_recovery.py`.
"""

from gapless.protocol import ProtocolSpec
from gapless_papers.protocols.epidemic.broker import EpidemicBroker
from gapless_papers.protocols.epidemic.client import EpidemicClient
from gapless_papers.protocols.epidemic.options import EpidemicOptions

PROTOCOL = ProtocolSpec(
    name="epidemic",
    guarantee="best-effort",
    summary="Gossip recovers events lost on links: push, pull towards subscribers or the publisher, or both",
    options=EpidemicOptions,
    broker=EpidemicBroker,
    client=EpidemicClient,
    copes_with=frozenset({"crash", "restart", "cut", "suspicion", "loss", "duplication", "relink"}),
)
