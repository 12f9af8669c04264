"""The network runtime: runs protocol nodes over TCP, as brokers that serve clients.

It drives the same nodes as the simulator, under the contract of `gapless.protocol`. From the inside
out:

| purpose | module |
| --- | --- |
| all bounds and timeouts | `settings` |
| wire format: frames, hellos, batches of messages | `wire`, `codec`, `address` |
| bytes in, frames out | `frames` |
| one connection, from the hello to its end | `connection` |
| refused connections; connections with an artificial delay | `refused_connections`, `delayed_connection` |
| dialling and listening, with and without TLS | `access`, `dialling`, `listener`, `tls` |
| fair turns of the event loop, deferred work, the longest turn | `turns`, `deferred_work`, `turn_meter` |
| all peers of a node: who dials whom, send queues, counters | `links`, `queues`, `counters` |
| the interface between links and a broker or client | `owner` |
| the failure detector | `detector` |
| one node: inputs in, effects carried out; its clock | `host`, `clock` |
| the file that describes a network | `network_file` |
| a broker: all of the above, and a port to listen on | `broker` |
| its disk | `broker_disk` |
| authentication, unauthenticated connections | `broker_security`, `pending_connections` |
| admission, checks of client requests, ended sessions | `admission`, `request_checks`, `expulsion` |
| status report, audit log | `report`, `audit_log` |
| the incarnation of a starting broker; questions to others | `joining`, `probe` |
| health, metrics, logs | `http_endpoint`, `metrics`, `logs`, `membership_log`, `log_backoff`, `refusal_log` |
| the reasons for which a broker waits | `waiting` |
| a broker as a process, a local network of processes | `process`, `fleet`, `event_loop` |
"""
