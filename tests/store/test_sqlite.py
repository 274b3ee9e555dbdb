"""The embedded store: the conformance suite, damaged files, a full disk, failing writes, kill -9."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from mast_opt.live.loop.events import Stored, Timer
from mast_opt.live.store.codec import event_from
from mast_opt.live.store.errors import CorruptStore, StoreError
from mast_opt.live.store.records import Batch
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import DATABASE, HEAD, SqliteDatabase, open_sqlite
from tests.platforms import needs
from tests.store.conformance import Conformance, timers
from tests.store.logs import batches, log

PAGE = 4096


@needs("signals")
class TestSqlite(Conformance):
    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[Callable[[], SqlStore]]:
        stores: list[SqlStore] = []

        def open_one() -> SqlStore:
            stores.append(open_sqlite(tmp_path / "state"))
            return stores[-1]

        yield open_one
        for store in stores:
            if store._db._head is not None:  # type: ignore[attr-defined]
                store.close()


def test_rows_of_other_formats_and_kinds_are_errors() -> None:
    row = (3, 9, 1, "Timer", '{"name":"noon"}', None)
    assert event_from(row) == Stored(3, 9, Timer("noon"))
    for wrong, words in (
        ((3, 9, 0, "Timer", "{}", None), "format 0"),
        ((3, 9, 2, "Timer", "{}", None), "format 2"),
        ((*row[:3], "Alarm", *row[4:]), "Alarm"),
        ((*row[:4], "{", None), "event 3"),
    ):
        with pytest.raises(CorruptStore, match=words):
            event_from(wrong)


# --- damaged files ---


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as kill -9 leaves it: most of the log is in the database, its end in the write-ahead log."""
    folder = tmp_path_factory.mktemp("written") / "state"
    store = open_sqlite(folder)
    epoch = store.take_lead("one", 1)
    for number, batch in enumerate(batches(log()[:120], 10)):
        store.append(epoch, batch)
        if number == 8:
            store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    copied = folder.with_name("copied")
    shutil.copytree(folder, copied)
    store.close()
    (copied / f"{DATABASE}-shm").unlink()
    return copied


def outcome(folder: Path) -> str:
    """``whole``, or what is wrong; anything else fails."""
    try:
        store = open_sqlite(folder)
    except StoreError as error:
        return str(error)
    try:
        count = store.check()
        assert count == 120
        assert tuple(store.read()) == log()[:120]
        assert [one.id for one in store.open_commands()] == [f"c{first}" for first in range(0, 120, 10)]
    except CorruptStore as error:
        return str(error)
    finally:
        store.close()
    return "whole"


def test_the_folder_is_whole(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path / "s")
    assert outcome(tmp_path / "s") == "whole"
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0 or os.name != "posix"


@pytest.mark.parametrize("name", [DATABASE, f"{DATABASE}-wal"])
def test_a_flipped_byte_is_noticed_or_harmless(written: Path, tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(1)
    size = (written / name).stat().st_size
    noticed = 0
    places = [int(rng.integers(first, min(first + PAGE, size))) for first in [*range(0, size, PAGE)] * 3]
    assert len(places) > 45
    for number, at in enumerate(places):
        folder = tmp_path / str(number)
        shutil.copytree(written, folder)
        data = bytearray((folder / name).read_bytes())
        data[at] ^= 1 << int(rng.integers(8))
        (folder / name).write_bytes(data)
        noticed += outcome(folder) != "whole"
        shutil.rmtree(folder)
    assert noticed > 5  # most of the others hit what no table or newer page uses


def test_a_cut_tail_is_noticed(written: Path, tmp_path: Path) -> None:
    size = (written / f"{DATABASE}-wal").stat().st_size
    for number, end in enumerate(range(0, size - 1, PAGE)):
        folder = tmp_path / str(number)
        shutil.copytree(written, folder)
        os.truncate(folder / f"{DATABASE}-wal", end)
        assert "its end is lost" in outcome(folder)
        shutil.rmtree(folder)


def test_a_commit_is_flushed_before_it_returns(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path)
    pragmas = {name: store._db.execute(f"PRAGMA {name}")[0][0] for name in ("synchronous", "journal_mode", "fullfsync")}
    store.close()
    assert pragmas == {"synchronous": 2, "journal_mode": "wal", "fullfsync": 1}


def test_the_head_is_the_last_event(tmp_path: Path) -> None:
    """Its last event alone may not be missing."""
    store = open_sqlite(tmp_path)
    epoch = store.take_lead("one", 1)
    for batch in batches(log()[:20], 5):
        store.append(epoch, batch)
        assert store._db.confirmed() == store.last_seq()
    store._db.execute("DELETE FROM events WHERE seq = 20")
    store.close()
    assert "the log ends with event 19, but event 20 was acknowledged" in outcome(tmp_path)


@pytest.mark.parametrize("text", ["00000000000000000120 00000000\n", "x", "99999999999999999999"])
def test_a_damaged_head_is_noticed(written: Path, tmp_path: Path, text: str) -> None:
    shutil.copytree(written, tmp_path / "s")
    (tmp_path / "s" / HEAD).write_text(text)
    store = open_sqlite(tmp_path / "s")
    assert [words for words in store.left_aside if "head.damaged" in words]
    store.close()
    assert (tmp_path / "s" / f"{HEAD}.damaged").read_text() == text
    assert outcome(tmp_path / "s") == "whole"


def test_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="state folder"):
        open_sqlite(tmp_path / "file")
    (tmp_path / DATABASE).write_text("this is no database" * 100)
    with pytest.raises(CorruptStore, match="not a database"):
        open_sqlite(tmp_path)


# --- writes that fail ---


def test_a_full_disk_loses_nothing_and_more_room_lets_it_go_on(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "state")
    epoch = store.take_lead("one", 1)
    store.append(epoch, Batch(0, timers(1, 10)))
    pages = store._db.execute("PRAGMA page_count")[0][0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 4}")  # SQLITE_FULL, as on a full disk
    end = 10
    error = None
    while error is None:
        try:
            end = store.append(epoch, Batch(end, timers(end + 1, 50)))
        except StoreError as found:
            error = found
    assert "full" in str(error)
    assert store.last_seq() == end
    assert list(store.read()) == list(timers(1, end))
    store._db.execute(f"PRAGMA max_page_count = {pages + 1000}")
    assert store.append(epoch, Batch(end, timers(end + 1, 50))) == end + 50
    store.close()


class Failing(SqliteDatabase):
    """A disk on which a flush fails now and then: before or after what was written is there."""

    fails = ""

    def _commit(self) -> None:
        if self.fails == "before":
            raise sqlite3.OperationalError("disk I/O error")
        super()._commit()
        if self.fails == "after":
            raise sqlite3.OperationalError("disk I/O error")


@pytest.mark.parametrize("when", ["before", "after"])
def test_after_a_failed_flush_the_store_says_what_is_there(tmp_path: Path, when: str) -> None:
    database = Failing(tmp_path / "state")
    store = SqlStore(database)
    epoch = store.take_lead("one", 1)
    store.append(epoch, Batch(0, timers(1, 3)))
    database.fails = when
    with pytest.raises(StoreError, match="disk I/O error"):
        store.append(epoch, Batch(3, timers(4, 2)))
    database.fails = ""
    last = store.last_seq()
    assert last == {"before": 3, "after": 5}[when]
    assert list(store.read()) == list(timers(1, last))
    assert store.append(epoch, Batch(last, timers(last + 1, 1))) == last + 1
    store.close()


def test_a_closed_store_takes_nothing(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path / "state")
    epoch = store.take_lead("one", 1)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.append(epoch, Batch(0, timers(1, 1)))
    store.close()


# --- kill -9 ---

CHILD = """
import sys
from pathlib import Path
from mast_opt.live.store.sqlite import open_sqlite
from mast_opt.live.store.records import Batch
from mast_opt.live.loop.events import Stored, Timer
def timers(first, count):
    return tuple(Stored(seq, 0, Timer(f"t{seq}")) for seq in range(first, first + count))
store = open_sqlite(Path(sys.argv[1]))
epoch = store.take_lead("child", 5)
end = store.last_seq()
while True:
    end = store.append(epoch, Batch(end, timers(end + 1, 1 + end % 5)))
    print(end, flush=True)
"""


@pytest.mark.second_tier
@needs("signals")
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    acknowledged = 0
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for _ in range(int(rng.integers(1, 60))):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split("\n")[:-1]
        acknowledged = int(rest[-1]) if rest else acknowledged
        child.wait()
        child.stdout.close()
        store = open_sqlite(tmp_path)
        assert store.last_seq() >= acknowledged
        assert list(store.read()) == list(timers(1, store.last_seq()))
        store.close()
