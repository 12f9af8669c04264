"""Chains of causes, walked by arrays: the shortest is found, and the work does not grow with the number of paths."""

import numpy as np

from gapless_spark.audit.chains import Causes, Reads, Search


def a_line(clients: int, rounds: int, reach: int) -> Search:
    """In each round every client publishes, and is then delivered what so many before it in the line published."""
    rows, pasts = [], {}
    places = np.arange(clients)
    for client in range(clients):
        heard = range(max(0, client - reach), client)
        for number in range(1, rounds + 1):
            rows += [(client, other, number, number * (reach + 1) + other - client + reach, number) for other in heard]
        hops = -(-(client - places) // reach)
        known = np.arange(1, rounds + 1)[:, None] - hops
        pasts[client] = (np.arange(1, rounds + 1), np.where(places < client, np.maximum(known, 0), 0))
    return Search(Reads(*np.array(rows).T), pasts)


def only(place: int, seq: int) -> Causes:
    return Causes.of(np.array([place]), np.array([seq]), np.array([0]))


def test_the_shortest_chain_is_found() -> None:
    search = a_line(5, 8, reach=2)
    assert search.shortest(only(3, 7), (4, 8)) == [(3, 7), (4, 8)]
    assert search.shortest(only(0, 2), (0, 8)) == [(0, 2), (0, 8)]
    assert search.shortest(only(0, 1), (4, 8)) == [(0, 1), (2, 7), (4, 8)]
    assert search.shortest(only(3, 8), (4, 8)) == [], "published at the same time"


def test_the_cause_that_is_preferred_is_taken() -> None:
    search = a_line(4, 5, reach=3)
    causes = Causes.of(np.array([0, 1, 2, 2]), np.array([5, 2, 1, 3]), np.array([1, 4, 3, 2]))
    assert search.shortest(causes, (3, 5)) == [(2, 3), (3, 5)], "the first of them had not come yet"


def test_a_chain_of_22_answers_is_walked_link_by_link() -> None:
    search = a_line(22, 22, reach=1)
    assert search.shortest(only(0, 1), (21, 22)) == [(place, place + 1) for place in range(22)]
    assert search.followed == 20


def test_paths_may_be_thousands_but_each_event_is_followed_once() -> None:
    clients, rounds = 22, 30
    search = a_line(clients, rounds, reach=2)
    chain = search.shortest(only(0, 1), (21, rounds))
    assert len(chain) == 12
    assert (chain[0], chain[-1]) == ((0, 1), (21, rounds))
    assert search.followed < 2 * clients
