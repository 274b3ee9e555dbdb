"""A plan or an instance that is replaced while it is read, and what killed writers leave behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.core.errors import InputError, InstanceError
from mast_opt.planner.io import atomic
from mast_opt.planner.io import consistent_read as undisturbed
from mast_opt.planner.io.atomic import exchange
from mast_opt.planner.io.readers import base
from mast_opt.planner.io.readers import folder as folder_source
from tests.platforms import needs

PROBLEM = mast_opt.read(Path(__file__).parents[2] / "instances" / "data_placement" / "two-regions")


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _old(path: Path) -> Path:
    """The path, changed for the last time two hours ago."""
    seconds = path.stat().st_mtime - 7200
    os.utime(path, (seconds, seconds))
    return path


def test_a_folder_changes_places_with_another(tmp_path: Path) -> None:
    for name in ("new", "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    if not exchange(tmp_path / "new", tmp_path / "old"):
        assert not sys.platform.startswith("linux")
        return
    assert (tmp_path / "old" / "file").read_text() == "new"
    assert (tmp_path / "new" / "file").read_text() == "old"


def test_the_target_is_never_missing(tmp_path: Path) -> None:
    target, stop, missing = tmp_path / "toy", threading.Event(), []
    mast_opt.write(PROBLEM, target)

    def watch() -> None:
        while not stop.is_set():
            if not target.exists():
                missing.append(1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(30):
        mast_opt.write(PROBLEM, target, force=True)
    stop.set()
    watcher.join()
    if sys.platform.startswith("linux"):
        assert not missing


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_read_never_mixes_two_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool) -> None:
    """The writer replaces the folder between the first and the second table that the reader opens."""
    if not exchanges:
        monkeypatch.setattr(atomic, "exchange", lambda one, other: False)
    target = tmp_path / "toy"
    mast_opt.write(PROBLEM, target)
    bigger = mast_opt.generate("data-placement", datasets=5, workloads=4, regions=3)
    opened: list[str] = []

    def read_bytes(path: Path, file: str, faults: Any, **options: Any) -> bytes | None:
        opened.append(file)
        if len(opened) == 3:
            mast_opt.write(bigger, target, force=True)
        return base.read_bytes(path, file, faults, **options)

    monkeypatch.setattr(folder_source, "read_bytes", read_bytes)
    read = mast_opt.read(target)
    assert len(opened) > 3
    assert read == bigger


def test_an_input_that_keeps_being_replaced_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, stamps = tmp_path / "toy", iter(range(10**6))
    mast_opt.write(PROBLEM, target)
    monkeypatch.setattr(undisturbed, "_stamp", lambda path: (next(stamps),))
    with pytest.raises(InputError, match="was replaced 20 times while it was read"):
        mast_opt.read(target)


def test_a_folder_that_a_killed_process_renamed_comes_back(tmp_path: Path) -> None:
    target = tmp_path / "toy"
    mast_opt.write(PROBLEM, target)
    content = _content(target)
    target.rename(tmp_path / ".toy.previous-00ff00ff")
    with pytest.raises(InstanceError, match=r"a process that was killed left it as .*previous-00ff00ff"):
        mast_opt.read(target)
    with pytest.raises(InputError, match="exists already"):
        mast_opt.write(PROBLEM, target)
    assert _content(target) == content
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]


def test_leftovers_of_killed_writers_go_with_the_next_write(tmp_path: Path) -> None:
    folder, file, fresh = (tmp_path / f".toy.partial-{n}{n}" for n in "123")
    other = tmp_path / ".joy.partial-11"
    folder.mkdir()
    (folder / "regions.csv").write_text("region")
    for path in (file, other):
        path.write_text("half")
        _old(path)
    _old(folder)
    fresh.mkdir()
    mast_opt.write(PROBLEM, tmp_path / "toy")
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, fresh.name, "toy"]


@pytest.mark.second_tier
@needs("signals")
def test_what_another_process_still_writes_stays(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from mast_opt.planner.io.atomic import new_folder
with new_folder(Path(sys.argv[1]), lambda target: None) as partial:
    (partial / "one").write_text("1")
    print(partial, flush=True)
    sys.stdin.readline()
    (partial / "two").write_text("2")
"""
    target = tmp_path / "toy"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as slow:
        assert slow.stdout is not None
        partial = Path(slow.stdout.readline().strip())
        seconds = partial.stat().st_mtime - 7200
        os.utime(partial, (seconds, seconds))
        mast_opt.write(PROBLEM, target)
        assert sorted(path.name for path in partial.iterdir()) == ["one"]
        slow.communicate("go on\n")
    assert slow.returncode == 0
    assert sorted(path.name for path in target.iterdir()) == ["one", "two"]


@pytest.mark.second_tier
@needs("signals")
def test_a_writer_that_is_killed_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "toy"
    mast_opt.write(PROBLEM, target)
    content = _content(target)
    code = """
import os, signal, sys
import mast_opt
from mast_opt.planner.io import atomic
atomic._swap = lambda partial, target: os.kill(os.getpid(), signal.SIGKILL)
mast_opt.write(mast_opt.read(sys.argv[1]), sys.argv[1], force=True)
"""
    ended = subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    assert ended.returncode == -9
    assert _content(target) == content
    [left] = [path for path in tmp_path.iterdir() if path != target]
    _old(left)
    mast_opt.write(PROBLEM, target, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]
