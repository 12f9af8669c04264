"""Long-running trials: chaos on real networks, overload, wrong clocks, searches. The tests run a small part of each."""
