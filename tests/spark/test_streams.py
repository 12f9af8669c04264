"""Passes over vectors: one without entries is one that is not known."""

import pyarrow as pa

from gapless_spark.audit.streams import merged_pasts, overtaken

VECTOR = pa.list_(pa.int32())


def batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    *numbers, vectors = zip(*rows, strict=True)
    columns = [*(pa.array(column, pa.int64()) for column in numbers), pa.array(vectors, VECTOR)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{place}" for place in range(len(columns))])


def test_what_was_read_counts_even_if_its_past_is_not_known() -> None:
    # rel, p, seq, role, own, width, idx, number, past
    rows: list[tuple[object, ...]] = [
        (0, 1, 0, 2, 0, 3, 1, 4, []),
        (0, 1, 1, 1, 0, 3, -1, 0, []),
        (0, 1, 1, 2, 0, 3, 1, 5, [0, 0, 2]),
        (0, 1, 2, 1, 0, 3, -1, 0, [0, 5, 2]),
    ]
    [found] = merged_pasts(iter([batch(rows)]))
    assert found.column("past").to_pylist() == [[0, 4, 0], [0, 5, 2]]
    assert found.column("fresh").to_pylist() == [[1], [1, 2]]
    assert found.column("grew").to_pylist() == [True, False], "what nothing was known of has grown"


def test_what_never_came_stands_behind_and_has_no_past() -> None:
    # s, rel, step, p, seq, state, late, idx, past
    rows: list[tuple[object, ...]] = [
        (1, 0, 3, 7, 2, 1, 0, 0, [0, 1]),
        (1, 0, 9, 8, 1, 2, 0, 1, []),
        (1, 0, 9, 8, 2, 2, 0, 1, []),
    ]
    [found] = overtaken(iter([batch(rows)]))
    assert list(zip(found.column("p").to_pylist(), found.column("seq").to_pylist(), strict=True)) == [(8, 1)]
