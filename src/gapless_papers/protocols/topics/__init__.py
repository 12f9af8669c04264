"""Shared by protocols of topics: the client, its messages, the filters that are topics, and the hypercube of
brokers."""
