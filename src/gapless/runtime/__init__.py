"""The network runtime: protocol nodes over TCP, as brokers that serve people.

It drives the same objects as the simulator, and promises them what `gapless.protocol` says. From the inside out:

| what | file |
| --- | --- |
| every bound and every patience | `settings` |
| what travels: frames, hellos, batches of messages | `wire`, `codec`, `address` |
| bytes in, frames out | `frames` |
| one connection, from the hello to its end | `connection` |
| who is heard in this turn of the event loop, and the longest turn | `turns`, `turn_meter` |
| all peers of a node: dialling, queues | `link`, `links` |
| who is silent, who left | `detector` |
| one node: inputs in, effects carried out | `host` |
| the file that describes a network | `network_file` |
| a broker: all of that, and a port to listen on | `broker` |
| who is let in to it, who is sent away again, and what it tells of itself | `reception`, `sent_away`, `report` |
| which life a broker starts with; asking others | `joining`, `probe` |
| health, metrics, logs | `http_endpoint`, `metrics`, `logs`, `news`, `reminders` |
| for what a broker waits, and since when | `waiting` |
| a broker as a process, a network of them on one machine | `process`, `fleet`, `event_loop` |
"""
