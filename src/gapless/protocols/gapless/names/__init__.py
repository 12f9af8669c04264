"""Durable subscriptions: what is known of them, who keeps it, and how it is changed.

- `register`: one keeper, and what it holds.
- `proposals`: changes of a record, each agreed by a majority of the keepers.
- `rules`: which changes there are: opening, confirming, moving, ending.
- `calls`: which calls of clients are refused in any case.
- `service`: what one broker does for its clients.
- `groups`: what it passes on between the members of a group.
- `listing`: which names there are.
- `floor`: up to which position no name wants history any more.
"""
