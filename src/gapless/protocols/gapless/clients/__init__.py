"""The broker's side of its clients.

| rule | file |
| --- | --- |
| one client: what it subscribes, publishes, was delivered and has taken | `sessions` |
| where that client is, and whether it is heard: all states, and what turns one into another | `session_state` |
| what it published and waits, in runs; what it was delivered and has not taken | `inbox`, `outbox` |
| who may come in, who is sent elsewhere, and who waits | `arrivals` |
| what a client subscribes to that comes back, by what is known of it here | `brought` |
| all of them: attaching, leaving, expiring, admission, delivery | `desk` |
| when publications are admitted | `publications` |
| when a subscription is ready | `readiness` |
| subscriptions that read history, and go over to what is published | `readings` |
| clients that lie behind, and who has not taken all | `lagging`, `owing` |
| sessions that go back to the broker at which they began | `going_home` |
| which events go over which link, and to which client | `dispatch` |
| what a client knows of and nobody here does | `unaccounted` |
| what a client claims, before any of it counts | `claims` |
| how much work an input is, for those that have to wait | `intake` |
| how long publications and deliveries take | `latencies` |
"""
