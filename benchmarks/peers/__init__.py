"""The systems that `benchmarks/network.py` compares, one per file.

A system starts its server, and has a publisher and a subscriber that run in processes of their own (`role.py`). All of
them publish the same payloads under one topic, in order; the subscriber counts them and checks the order.
"""
