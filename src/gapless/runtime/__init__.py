"""The network runtime: protocol nodes over TCP, as brokers that serve people.

It drives the same objects as the simulator, and promises them what `gapless.protocol` says. From the inside out:

| what | file |
| --- | --- |
| every bound and every patience | `settings` |
| what travels: frames, hellos, batches of messages | `wire`, `codec`, `entries`, `address` |
| bytes in, frames out | `frames` |
| one connection, from the hello to its end | `connection` |
| one that is refused, and one that seems to be far away | `farewell`, `distant_connection` |
| dialling and listening, with TLS and without | `access`, `dialling`, `listener`, `tls` |
| who is heard in this turn of the event loop, what has to wait, and the longest turn | `turns`, `later`, `turn_meter` |
| all peers of a node: who dials whom, what waits, what went through | `links`, `queues`, `counters` |
| what links ask of a broker, or of a client | `owner` |
| who is silent, who left | `detector` |
| one node: inputs in, effects carried out; its clock | `host`, `clock` |
| the file that describes a network | `network_file` |
| a broker: all of that, and a port to listen on | `broker` |
| its disk | `broker_disk` |
| who stands outside, and how they prove who they are | `doors`, `crowd` |
| who is let in, what clients may ask for, who is sent away again | `reception`, `gate`, `expulsions` |
| what it tells of itself, and of who came and what operators did | `report`, `audit_log` |
| which life a broker starts with; asking others | `joining`, `probe` |
| health, metrics, logs | `http_endpoint`, `metrics`, `logs`, `news`, `reminders`, `refusal_log` |
| for what a broker waits, and since when | `waiting` |
| a broker as a process, a network of them on one machine | `process`, `fleet`, `event_loop` |
"""
