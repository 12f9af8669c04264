"""The client's side: a leaf of the tree that takes its session along when its broker dies.

It keeps what it published until the broker says that it is safe, and the cut and position of each subscription.
When the connection or the broker is lost it asks its contacts in turn, tells whoever holds its session all of
this (`Attach`), and continues: what it saw already is not delivered again, what it lacks is.

| rule | file |
| --- | --- |
| which input goes to which part | `node` |
| who holds the session, and what whoever does is told | `session_search` |
| what was offered and published, and is not safe yet | `publishing` |
| which subscriptions there are, and what is answered about them | `subscriptions` |
| what was delivered, and what of it the application has taken | `deliveries` |
| one subscription: what is due, and what has come | `held_subscription` |
| durable subscriptions: all of them, and one with what is confirmed of it | `named_client`, `named` |
| durable subscriptions that a group shares | `groups` beside this room |
| to whom all of these speak | `line` |
"""

from gapless.protocols.gapless.client.node import GaplessClient

__all__ = ["GaplessClient"]
