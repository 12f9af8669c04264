"""Who publishes, who subscribes, and from which cut on: `routing_table`."""
