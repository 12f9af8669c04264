"""Merging small files keeps each event once, in its order."""

from pathlib import Path

import pyarrow.parquet as pq

from gapless.archive import Archive, ArchiveWriter, Contents, compact, read_files
from gapless.events import Event
from gapless.positions import Position

DAY = 86_400_000_000
NOON = 1_794_830_400_000_000
BEGIN = Position.at(NOON - 1)


def kept(directory: Path) -> list[Event]:
    return [
        event for some in read_files(Archive(directory), "TRUE", Position.at(0), Position.at(2**53)) for event in some
    ]


def test_small_files_become_one_and_files_end_with_their_day(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    contents = Contents("shop", "TRUE", BEGIN, BEGIN)
    made: list[Event] = []
    for place in range(20):
        writer = ArchiveWriter(archive, contents)
        # Each timestamp has two events, so that a file must not end between them; every tenth portion spans two days.
        steps = (0, 0, 1, DAY if place % 10 == 9 else 2)
        at = made[-1].stamp + 1 if made else NOON
        some = [Event("ann", 4 * place + n + 1, {"n": 4 * place + n}, b"", at + step) for n, step in enumerate(steps)]
        writer.add(some)
        made += some
        assert writer.commit(Position.at(some[-1].stamp)) == 4
        contents = writer.contents
    assert len(contents.files) == 22
    assert kept(tmp_path) == made
    contents = compact(archive, contents, many=5)
    assert len(contents.files) == 3
    assert kept(tmp_path) == made
    assert Archive(tmp_path).contents() == contents
    on_disk = sorted(path for path in tmp_path.rglob("*.parquet"))
    assert sorted(str(path.relative_to(tmp_path)) for path in on_disk) == sorted(file.path for file in contents.files)
    assert sum(pq.read_metadata(path).num_rows for path in on_disk) == 80
    assert [file.since for file in contents.files] == [BEGIN, *(file.until for file in contents.files[:-1])]
