"""A durable subscription that a group of clients shares: each event goes to one of them.

- `dealer`: of the member that listens, and deals out what comes.
- `member`: of every member: what it was dealt, and what of it is confirmed.
- `client`: what a client's node does about both: opening, joining, taking over, leaving.

**One deals.** The first to open the name listens to it, as one client does to a name that nobody shares: it reads from
what is confirmed on, and its generation is the only one that the keepers of names let confirm. All others are told who
it is, and say to it, by way of their brokers (`names/groups`), that they are there. When it is not heard for a while,
one of them opens the name in a later generation, and deals in its place.

**What is promised.** Each event goes to a member; to another only if it was not confirmed in time, or its member left
or was not heard for a while; and never to two who were both told that it is confirmed. For the dealer gives an event to
a second one only after it has taken it from the first, whose confirmation it refuses then; and what it takes for
confirmed counts only once the keepers hold it, in its generation. A new dealer waits a moment until the members have
told what they hold, and leaves that with them.

**Order.** The dealer gives out what it gets in causal order, and each member gets its part in that order. What is given
again may come later than its effects. Between members there is no order.
"""
