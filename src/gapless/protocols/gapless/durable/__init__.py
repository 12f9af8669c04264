"""Durable subscriptions: subscriptions that outlive their clients, and those that several clients share.

| file | contents |
| --- | --- |
| `messages`, `state` | what nodes send, and the state of one broker, as plain data |
| `register`, `proposals`, `rules` | a replica of the register; who changes a record; which changes there are |
| `service` | calls of clients: attach, acknowledge, move, end, list |
| `relay`, `groups` | shared subscriptions: the broker of a member, and the coordinator |
| `steps` | what a broker does with inputs and after each step |
| `client`, `attachment`, `membership` | the client's node: all calls; alone; as a member of a shared one |
"""
