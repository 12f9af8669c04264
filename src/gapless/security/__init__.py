"""Authentication, permissions and limits: the parts of network security that need no socket.

`identity` identifies a peer, `tokens` and `signed_tokens` authenticate it, `users_file` lists the
permissions of users, `permissions` decides whether a filter or an event is allowed, and `limits`
bounds the usage. `certificates` creates and reads certificates, `credentials` holds what a client
presents, and `development` puts all of it into a directory for development. Brokers use them in
`gapless.runtime.broker_security` and `gapless.runtime.request_checks`.
"""
