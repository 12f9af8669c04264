"""Durable subscriptions, which outlive their clients, and shared subscriptions.

| module | contents |
| --- | --- |
| `messages`, `state` | messages, and the state of one broker, as plain data |
| `register`, `proposals`, `rules` | a replica of the register; proposers of changes; the possible changes |
| `service` | calls of clients: attach, acknowledge, move, end, list |
| `relay`, `groups` | shared subscriptions: the broker of a member, and the coordinator |
| `steps` | dispatch of a broker's inputs, and work after each step |
| `client`, `attachment`, `membership` | the client's node: all calls; alone; as a member of a shared one |
"""
