"""The broker's side of its clients.

| rule | file |
| --- | --- |
| one client: what it subscribes, publishes, was delivered and has confirmed | `sessions` |
| where that client is, and whether it is heard: all states, and what turns one into another | `session_state` |
| what it published and waits, in runs; what it was delivered and has not confirmed | `inbox`, `outbox` |
| all of them: attaching, leaving, expiring, admission, delivery | `desk` |
| which events go over which link, and to which client | `dispatch` |
| what a client claims, before any of it counts | `claims` |
| how much work an input is, for those that have to wait | `intake` |
| how long publications and deliveries take | `latencies` |
"""
