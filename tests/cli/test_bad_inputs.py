"""No input, however broken, and no disk, however full, shows a traceback."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Call, command, spawn
from tests.platforms import needs

JUNK = bytes(range(256)) * 64


def _folder(path: Path) -> None:
    path.mkdir()
    (path / "instance.toml").write_bytes(JUNK)


def _tables(path: Path) -> None:
    path.mkdir()
    (path / "instance.toml").write_text('format = "mast-opt/1"\nkind = "data-placement"\nname = "junk"\n')
    for name in ("regions", "gpu_supply", "datasets", "replicas", "workloads", "gpu_demand", "reads"):
        (path / f"{name}.csv").write_bytes(JUNK)


def _kind(path: Path) -> None:
    path.mkdir()
    (path / "instance.toml").write_text('format = "mast-opt/1"\nkind = "cheese-placement"\nname = "junk"\n')


INPUTS = {
    "missing": lambda path: None,
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(JUNK),
    "empty-folder": lambda path: path.mkdir(),
    "junk.xlsx": lambda path: path.write_bytes(JUNK),
    "cut.xlsx": lambda path: path.write_bytes(b"PK\x03\x04" + JUNK),
    "junk.json": lambda path: path.write_bytes(JUNK),
    "list.json": lambda path: path.write_text("[1, 2, 3]"),
    "cut.json": lambda path: path.write_text('{"format": "mast-opt/1", "kind": "data-pl'),
    "junk-toml": _folder,
    "junk-tables": _tables,
    "unknown-kind": _kind,
}


@pytest.mark.parametrize("verb", ["validate", "solve", "export", "verify"])
@pytest.mark.parametrize("name", INPUTS)
def test_broken_instances(call: Call, tmp_path: Path, name: str, verb: str) -> None:
    path = tmp_path / name
    INPUTS[name](path)
    more = {"export": [tmp_path / "out.lp"], "verify": [tmp_path / "plan"]}.get(verb, [])
    ended = call(verb, path, *more)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert name.split(".")[0] in ended.err or "expected" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("name", INPUTS)
def test_broken_plans(call: Call, instance: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    INPUTS[name](path)
    for ended in (call("verify", instance, path), call("solve", instance, "--start", path)):
        assert ended.code == 2
        assert ended.err.startswith("error: ")


@pytest.mark.parametrize("name", ["\x00", "a\x00b", "x" * 5000])
def test_paths_that_cannot_be(call: Call, name: str) -> None:
    ended = call("validate", name)
    assert ended.code == 2
    assert "Traceback" not in ended.err


def _tiny_files() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))


@needs("file size limits")
class TestFullDisk:
    """A limit on file sizes stands for a disk that is full: writing starts well and then fails."""

    def test_generate_leaves_nothing_behind(self, tmp_path: Path) -> None:
        ended = spawn("generate", "data-placement", tmp_path / "out", "--json", preexec_fn=_tiny_files)
        assert ended.code == 2
        assert "could not be written" in ended.record["error"]
        assert list(tmp_path.iterdir()) == []

    def test_a_plan_that_cannot_be_kept(self, instance: Path, tmp_path: Path) -> None:
        ended = spawn("solve", instance, "--out", tmp_path / "plan", preexec_fn=_tiny_files)
        assert ended.code == 2
        assert "could not be written" in ended.err
        assert [path.name for path in tmp_path.iterdir()] == ["instance"]

    def test_a_run_that_cannot_be_kept(self, tmp_path: Path) -> None:
        trace = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"
        assert spawn("simulate", trace, "--policy", "fifo").code == 0  # compiles what the next one may not write
        ended = spawn("simulate", trace, "--policy", "fifo", "--out", tmp_path / "run", preexec_fn=_tiny_files)
        assert ended.code == 2
        assert f"{tmp_path / 'run'} could not be written" in " ".join(ended.err.split())
        assert list(tmp_path.iterdir()) == []

    def test_a_log_that_ends_early_does_not_cost_the_plan(self, instance: Path, tmp_path: Path) -> None:
        ended = spawn("solve", instance, "--events", tmp_path / "events", "--json", preexec_fn=_tiny_files)
        assert ended.code == 0
        assert "is incomplete" in ended.err

    @needs("/dev/full")
    @pytest.mark.parametrize("option", ["--json", "--full"])
    def test_stdout(self, instance: Path, option: str) -> None:
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run(
                command("solve", instance, option), stdout=full, stderr=subprocess.PIPE, encoding="utf-8", check=False
            )
        assert ended.returncode == 2
        assert ended.stderr.strip() == "error: stdout: No space left on device"


def test_targets_that_cannot_be_written(call: Call, instance: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for target in (tmp_path / "file", tmp_path / "file" / "plan"):
        ended = call("solve", instance, "--out", target)
        assert ended.code == 2
        assert str(target) in ended.err.replace("\n", "")
    ended = call("solve", instance, "--events", tmp_path / "no-such-folder" / "events")
    assert ended.code == 2
    assert "events" in ended.err
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_folder_that_is_read_only(
    call: Call, instance: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a system says of such a folder, except to root, who may write anywhere."""

    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "touch", refuse)
    ended = call("solve", instance, "--out", tmp_path / "plan")
    assert ended.code == 2
    assert "may write" in ended.err
    assert not (tmp_path / "plan").exists()


def test_a_target_is_refused_before_the_solve(call: Call, hard: Path, tmp_path: Path) -> None:
    """Without a time limit this would take hours if it were refused afterwards."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    assert call("solve", hard, "--out", tmp_path / "mine").code == 2
