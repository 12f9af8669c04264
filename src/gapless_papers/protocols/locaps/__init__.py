"""LoCaPS as its paper describes it ("LoCaPS: Localized Causal Publish-Subscribe"), with the repairs its guarantee
needs.

**Guarantee**: gapless causal delivery while subscribers and publishers come and go, and up to f brokers crash.

There are two variants (`placement`). Over f + 1 paths, on any graph, it uses a causal multicast that survives failures:
`protocols.locamu`, and here `path_broker`, `path_routing` and the other modules named `path_…`. The rest of this text
is about the bare tree (`paths = "one"`), on which forwarding in order of arrival *is* causal order, and no broker can
fail.

**How it works.** Advertisements are flooded, and subscriptions follow them to the publishers (`routing`). Where a
subscription meets a publisher, a marker with the publisher's next number goes back to the subscriber: the starting cut
(Algorithm 1, option `coverage = false`). It takes 2·d hops for a publisher d hops away, and the nearest one suffices to
start (Condition 3). If a covering subscription is stable already, the first broker that has it, the pivot, and the next
f on the path each send a partial marker (`pivots`), and the start is the largest of their numbers (`starting_cut`):
2·(k + f) hops for a pivot k hops away, and never more than 2·d (Algorithm 2).

**Why it is correct.** Let S be a subscription at broker b, c an event of p1 that S starts with or gets later, fixed at
broker w1 (the publisher's, or the last of a pivot's set), and e an effect of c, by p2, that S wants. Let m be where the
paths between b, p1 and p2 meet. If w1 is m or beyond, S passed m before c did, so on FIFO links S was at p2 before
anything that c caused, and p2's marker goes to b ahead of e. If w1 is before m, then w1 answered for p2 at the same
time, and e passes w1 after c. If p2 had not advertised yet when S passed, e was held back until S was there. In each
case the start for p2 is fixed at b when e arrives, and e is not before it.

Where the paper is incomplete, contradictory, or wrong:

- *Late publishers.* Algorithm 1 lets a publisher publish as soon as it has advertised; its proof assumes that S was
  sent to every publisher. Here events wait at the publisher's broker until the advertisement is stable: the flood has
  been answered, and each answer follows all matching subscriptions. (Repair `late-publishers`.)
- *Pivots.* The text of V-B requires that the covering subscription be F-stable, lines 11 and 17 of Algorithm 2 only
  that
  it be stable for that publisher. Case 3 of Theorem 3 says that every path between two publishers meets the pivot's
  set; on a tree, two publishers behind the pivot communicate without it. Here a broker answers for all matching
  publishers behind a link or for none, which it can decide by itself, and checks again when markers pass. (Repair
  `pivots`.)
- *The pivot's number.* "The first event after the marker" is not enough: events published before the covering
  subscription was stable never passed the pivot. Its number is at least that subscription's own cut.
- *The starting event.* Lines 37 to 42 wait until an event is in each partial pivot's buffer and take the latest
  one; a quiet publisher would not start before its own marker arrives. Here partial markers carry numbers, so the last
  of them fixes the start. (Repair `numbers`.)
- *The members of the set.* Section VI calls it hard to know them. Here the subscription carries the pivot's name and
  how many have yet to answer. So each broker knows its part, no broker further on answers again, and the subscriber's
  broker waits for f + 1 of one pivot. If one declines, the publisher's marker, which always arrives, fixes the start.
- *Full markers from a pivot.* Lines 10 to 14 let a pivot send a full marker; VI-B excludes that on the extended graph
  and then mentions it again. Here a pivot sends partial markers only. With f = 0 one is enough, so nothing is lost.
- *One full marker for all.* V-B ends with "after a full marker is received by a subscriber it can start delivering
  events from all publishers". That would start other publishers at any event; each waits for its own marker here.
  (Repair `own-markers`.)
- *Marker cascades.* Markers to all of a publisher's subscribers, and markers in answer to markers (lines 14 to 21 of
  Algorithm 1), serve cyclic overlays. On a tree the marker goes to the subscriber alone.
- *Leaving* is not treated. A publisher that leaves withdraws its advertisement after its last event, and subscriptions
  are no longer stable for it. A start, once fixed, holds when it returns: in between there was nothing to miss. A
  covering subscription can end at any time: those it covered were sent after it, so on each link they arrive before it
  ends. A subscription ends with the last event delivered to its client.
- *No publishers.* A subscription that no advertisement matches is active at once.
"""

from gapless.protocol import ProtocolSpec, any_overlay
from gapless_papers.protocols.locaps.client import LocapsClient
from gapless_papers.protocols.locaps.messages import (
    ClientAdvertise,
    ClientPublish,
    ClientReturn,
    ClientSubscribe,
    ClientUnadvertise,
    ClientUnsubscribe,
)
from gapless_papers.protocols.locaps.options import LocapsOptions
from gapless_papers.protocols.locaps.placement import make_broker

PROTOCOL = ProtocolSpec(
    name="locaps",
    guarantee="gcd",
    summary="LoCaPS: a covered subscription takes a round trip to the f-th broker behind its pivot; f + 1 paths",
    options=LocapsOptions,
    broker=make_broker,
    client=LocapsClient,
    refuses=any_overlay,
    copes_with=frozenset({"crash"}),
    client_messages=(
        ClientAdvertise,
        ClientUnadvertise,
        ClientSubscribe,
        ClientUnsubscribe,
        ClientPublish,
        ClientReturn,
    ),
)
