"""What memory is left, read from made-up systems."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_opt.core.memory import available_bytes, built_in_bytes
from tests.platforms import needs

MEMINFO = "MemTotal:  9000 kB\nMemFree:  100 kB\nMemAvailable:  4000 kB\nSwapFree:  1000 kB\nHugePages_Total: 0\n"
MACHINE = 5000 * 1024


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(MEMINFO)
    return tmp_path


def _group(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_a_machine_without_control_groups(root: Path) -> None:
    assert available_bytes(root) == MACHINE


@needs("setpriv")  # Linux: RLIMIT_AS
def test_a_limit_on_address_space_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    (root / "proc/self/statm").write_text("100 50 20 1 0 30 0\n")
    used = 100 * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda what: (used + 7000, used + 9000))
    assert available_bytes(root) == 7000
    monkeypatch.setattr(resource, "getrlimit", lambda what: (used - 1, used))
    assert available_bytes(root) == 0
    monkeypatch.setattr(resource, "getrlimit", lambda what: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert available_bytes(root) == MACHINE


def test_version_two_counts_the_groups_around_and_not_what_can_be_dropped(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("0::/jobs/mine\n")
    top = root / "sys/fs/cgroup"
    _group(top / "jobs/mine", {"memory.max": "max\n", "memory.current": "700\n", "memory.stat": "anon 1\nfile 2\n"})
    _group(top / "jobs", {"memory.max": "3000\n", "memory.current": "900\n", "memory.stat": "anon 1\nfile 400\n"})
    assert available_bytes(root) == 3000 - 900 + 400


def test_version_one(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("5:cpu,cpuacct:/jobs\n4:memory:/jobs\n0::/\n")
    stat = {"memory.stat": "cache 1\ntotal_cache 20\n"}
    limits = {"memory.limit_in_bytes": "2000\n", "memory.usage_in_bytes": "1500\n"}
    _group(root / "sys/fs/cgroup/memory/jobs", limits | stat)
    assert available_bytes(root) == 2000 - 1500 + 20


def test_a_limit_above_the_machine_changes_nothing(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("4:memory:/\n")
    limits = {"memory.limit_in_bytes": f"{2**63 - 4096}\n", "memory.usage_in_bytes": "1500\n"}
    _group(root / "sys/fs/cgroup/memory", limits | {"memory.stat": "total_cache 20\n"})
    assert available_bytes(root) == MACHINE


def test_more_in_use_than_allowed_leaves_nothing(root: Path) -> None:
    (root / "proc/self/cgroup").write_text("0::/\n")
    _group(root / "sys/fs/cgroup", {"memory.max": "1000\n", "memory.current": "1500\n", "memory.stat": "file 20\n"})
    assert available_bytes(root) == 0


def test_a_system_that_tells_nothing_else_tells_what_is_built_in(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) == built_in_bytes()


def test_this_machine_tells() -> None:
    left = available_bytes()
    assert left is not None
    assert left > 0
