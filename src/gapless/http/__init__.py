"""The HTTP interface of a broker: health and metrics, the gateway for programs, and the console for people.

The gateway is an ordinary client of its broker: each request acts with the identity of its user, through the public
client library. So delivery guarantees, flow control, permissions and limits are those of every other client.

| purpose | module |
| --- | --- |
| listens, and limits what a peer can use | `server` |
| how long requests hold the event loop | `step_meter` |
| the console: its files, and its requests | `console`, `console_files`, `console_api`, `broker_summary`, `covers` |
| the ASGI application: routes, security headers, cross-origin rules | `application`, `guards` |
| authentication of requests, and clients on behalf of users | `callers`, `gateway`, `clients` |
| events as JSON, CloudEvents 1.0, server-sent events and NDJSON | `event_json`, `cloud_events`, `streams` |
| publishing, with idempotent retries | `publishing`, `idempotency` |
| subscribing, resuming, history, durable subscriptions | `cursors`, `event_streams`, `durable` |
| all of it over one WebSocket | `web_socket` |
| brokers, findings, samples, logs, causes and effects | `network_view`, `causality` |
| errors | `problems` |

It needs the extra `http`. A broker without it serves `/healthz`, `/metrics` and `/status` (`gapless.runtime`).
"""
