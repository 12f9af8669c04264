"""Who publishes, who subscribes, and from which cut on.

| rule | file |
| --- | --- |
| what is known of a link, a subscription, an advertisement | `records` |
| how they spread, and which cuts follow | `routing_table` |
| which subscriptions are sent over a link, and which ones others represent there | `representation` |
"""
