"""Durable subscriptions, which outlive their clients, and shared subscriptions.

| module | contents |
| --- | --- |
| `messages`, `state` | messages, and the state of one broker, as plain data |
| `progress` | what is acknowledged, as a client or a coordinator keeps it |
| `register`, `proposals`, `rules` | a replica of the register; proposers of changes; the possible changes |
| `pages` | reading all records: for lists, and for replicas without memory |
| `service` | calls of clients: attach, acknowledge, move, end |
| `groups`, `members`, `relay` | shared subscriptions: the coordinator, and the broker of a member |
| `steps` | dispatch of a broker's inputs, and work after each step |
| `client`, `attachment`, `exclusive`, `membership` | the client's node: all calls; an attachment; alone; as a member |
"""
