"""What protocols of topics share: the client, what it says, which filters are topics, and the hypercube of brokers."""
