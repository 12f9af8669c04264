"""Who may come in, what it may do, and how much of it: the parts that need no socket.

`identity` says who somebody is, `tokens` and `signed_tokens` how it proves that, `users_file` what it may,
`permissions` whether a filter or an event lies within, `limits` how much. `certificates` makes and reads
certificates, `credentials` is what a client shows, and `first_steps` puts all of it into a directory for development.
Brokers ask at their doors: see `gapless.runtime.broker_security` and `gapless.runtime.request_checks`.
"""
