"""Who publishes, who subscribes, and from which cut on.

| rule | file |
| --- | --- |
| what is known of a link, a subscription, an advertisement | `records` |
| how they spread, who represents whom, which cuts follow | `routing_table` |
"""
