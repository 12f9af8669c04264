"""The list of files determines the contents of an archive."""

from pathlib import Path

import pytest

from gapless.archive import Archive, Contents
from gapless.archive.directory import LIST, ArchivedFile
from gapless.errors import ArchiveError
from gapless.positions import Position


def listed(since: int, until: int) -> ArchivedFile:
    return ArchivedFile(f"date=2026-11-16/{until}.parquet", Position.at(since), Position.at(until), events=1, size=1)


def test_an_unwritten_archive_is_empty(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "a")
    assert archive.contents_if_any() is None
    with pytest.raises(ArchiveError, match="there is no archive at"):
        archive.contents()


def test_a_damaged_list_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / LIST).write_bytes(b'{"network": "shop"')
    with pytest.raises(ArchiveError, match="is damaged"):
        Archive(tmp_path).contents_if_any()


def test_a_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    gap = (Position.at(3), Position.at(4))
    contents = Contents("shop", "TRUE", Position.at(0), Position.at(9), [listed(0, 9)], [gap])
    Archive(tmp_path).replace(contents)
    assert Archive(tmp_path).contents() == contents
    assert '"until": "p9"' in (tmp_path / LIST).read_text(), "people read it, and paste positions from it"


def test_files_between_two_positions() -> None:
    contents = Contents("shop", "TRUE", Position.at(0), Position.at(9), [listed(0, 3), listed(3, 6), listed(6, 9)])
    assert contents.between(Position.at(3), Position.at(6)) == [listed(3, 6)]
    assert contents.between(Position.at(2), Position.at(7)) == contents.files
    assert contents.between(Position.at(9), Position.at(12)) == []


def test_files_that_are_not_listed_are_removed(tmp_path: Path) -> None:
    contents = Contents("shop", "TRUE", Position.at(0), Position.at(3), [listed(0, 3)])
    day = tmp_path / "date=2026-11-16"
    day.mkdir()
    for name in ("3.parquet", "6.parquet", "6.parquet.new"):
        (day / name).touch()
    Archive(tmp_path).clear(contents)
    assert [path.name for path in day.iterdir()] == ["3.parquet"]
    Archive(tmp_path).clear(None)
    assert list(day.iterdir()) == []


def test_one_writes_at_a_time(tmp_path: Path) -> None:
    with Archive(tmp_path / "a").locked(), pytest.raises(ArchiveError, match="another process writes"):
        Archive(tmp_path / "a").locked().__enter__()
    with Archive(tmp_path / "a").locked():
        pass
