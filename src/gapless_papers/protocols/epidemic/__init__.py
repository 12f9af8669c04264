"""Gossip, after "Introducing Reliability in Content-Based Publish-Subscribe through Epidemic Algorithms".

**What it promises**: nothing is delivered that was not asked for, and nothing twice. Beyond that its best: what lossy
links swallow, and what is lost while the tree is rearranged, is recovered with a probability that buffers, gossip
interval and fan-out buy.

**How.** Subscriptions are forwarded over an unrooted tree (`subscription_table`, `link`), events go wherever someone
wants them. Brokers cache what passes (`cache`). Then, by option `recovery`:

- `push`: each broker tells subscribers of a pattern, now and then, what it caches for it; they ask for what they lack.
- `subscriber-pull`: an event carries a number for each pattern that it matches (`numbering`), so a subscriber notices a
  gap (`losses`) and asks others who subscribed to the same pattern.
- `publisher-pull`: it asks back along the way by which the latest event of the same source came.
- `combined-pull`: now the one, now the other. `none`: the bare tree.

**Why it is right.** *Not unasked:* the subscriber's broker matches every event itself, however it came. *Not twice:*
what was had is remembered, and what is forgotten counts as had (`received`). *Best:* while an event stands in a cache
that gossip can reach, each round finds it with some probability q > 0, so it stays missing for k rounds with (1 − q)^k,
and the cache keeps it for a time that grows with its size. Pull adds a condition: the loss must be noticed, by a later
event of the same source and pattern.

Where the paper leaves a question or cannot be followed:

- *Subscriptions get lost too.* It speaks of lost events only; on the same links, a lost subscription would close a way
  for ever. Here a neighbour confirms what it was told, and is told again until it does (`link`).
- *The tree under change.* Left to earlier work. Here the ends of a link that goes stop using it at once, but keep what
  was wanted behind it known to others for `hold_ms`; the ends of a new one exchange all that they know.
- *The first number.* Which one a subscriber expects first is not said. If it were 1, who subscribes late would pull the
  whole past. Here the first that comes fixes it, so what is lost before that is never noticed: over 10 links with
  20 % loss, eight events on average. Push has no such beginning, but tells a new subscriber of events from before its
  time, and delivers them.
- *Patterns that the source does not know yet* have no number in its events. Pull cannot see these losses, push can.
- *The end of LostBuffer.* Nothing ever leaves it but by recovery. Here a missing event is given up after `give_up_ms`,
  and the oldest when there are more than `lost`.
- *isReceived* is glossed over; an exact one grows for ever. See `received` for one that is bounded and errs on the safe
  side.
- *Which pattern, which source.* Figures 2 and 3 draw one from all, so that most rounds would have nothing to say. Here
  only those are drawn for which something is cached (push) or missing (pull), and somebody is there to be told.
- *Who answers a pull.* The text says the first broker on the way that has the event; figure 3 passes the whole digest
  on, so that everyone who has it answers. Here what was found is taken out of the digest, and an empty one ends there.
- *P_forward.* Figure 2 applies it at every broker, figure 3 at subscribers only; no reason is given. Kept as they are.
- *What was recovered* is for the one that asked: whether it travels on is not said. Others behind it look for
  themselves; but if the event still comes along the tree afterwards, it is passed on then.
- *Combining the pulls.* Not said how. Here each round draws its direction, by `publisher_probability`, and takes the
  other one where the first leads nowhere.
- *Routes* that are no longer ways of the tree: the pull is sent to the next broker on the route directly, as unicast is
  assumed anyway. Events that came by gossip say nothing about ways.
- *The source* is a broker, since the paper has no clients; here its name includes its life, as a broker that restarts
  without memory numbers anew. Push names events by their publisher and its number.
- *Acknowledgement implosion* is called unlikely because two subscribers of different patterns seldom notice a loss at
  the same time. Two of the same pattern behind the same lossy link do, each time.
- *Push and patterns.* It says that not the patterns in all, but those that an event matches, slow push down. It is the
  other way round: a pattern's turn comes the more rarely, the more patterns a broker caches events for; and an event
  that matches more of them passes, and is cached by, more brokers. See `benchmarks/epidemic_recovery.py`.
"""

from gapless.protocol import ProtocolSpec
from gapless_papers.protocols.epidemic.broker import EpidemicBroker
from gapless_papers.protocols.epidemic.client import EpidemicClient
from gapless_papers.protocols.epidemic.options import EpidemicOptions

PROTOCOL = ProtocolSpec(
    name="epidemic",
    guarantee="best-effort",
    summary="What lossy links swallow comes back by gossip: push, pull towards subscribers or the publisher, or both",
    options=EpidemicOptions,
    broker=EpidemicBroker,
    client=EpidemicClient,
    copes_with=frozenset({"crash", "restart", "cut", "suspicion", "loss", "duplication", "relink"}),
)
