"""Named subscriptions: what is known of them, who keeps it, and how it is changed.

- `register`: one keeper, and what it holds.
- `proposals`: changes of a record, each agreed by a majority of the keepers.
- `rules`: which changes there are: opening, confirming, moving, ending.
- `service`: what one broker does for its clients.
"""
