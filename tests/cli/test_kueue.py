"""``mast-opt simulate --kueue``: a folder of YAML instead of a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.hosts.kueue.test_manifests import write_clusters


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_clusters(tmp_path)


def test_the_command(folder: Path, call: Call) -> None:
    ended = call("simulate", "--kueue", folder, "--json")
    assert ended.code == 0
    found = {one["workload"]: one for one in ended.record["workloads"]}
    assert found["default/a"]["clusters"] == ["east"]
    assert found["default/b"]["clusters"] == found["default/train"]["clusters"] == []
    assert found["default/a"]["reasons"]["east"] == "fits on h100"
    ended = call("simulate", "--kueue", folder)
    assert "1 workload of 3 can start; 2 wait." in ended.out


def test_a_trace_or_a_folder(folder: Path, call: Call) -> None:
    for tokens in (["simulate"], ["simulate", "trace", "--policy", "fifo", "--kueue", folder]):
        ended = call(*tokens)
        assert ended.code == 2
        assert "--kueue" in ended.err
