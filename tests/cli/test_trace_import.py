"""``mast-opt import`` and ``validate`` on traces of jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.simulation.traces import samples

SMALL = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"


def test_from_slurm_to_a_simulation(call: Call, tmp_path: Path) -> None:
    samples.write(tmp_path)
    out = tmp_path / "trace"
    ended = call("import", "sacct", tmp_path / "sacct.json", tmp_path / "sinfo.txt", out, "--needs", "gpus")
    assert ended.code == 0, ended.err
    assert f"mast-opt simulate {out}" in " ".join(ended.out.split())
    assert "exists already" in call("import", "sacct", tmp_path / "sacct.json", tmp_path / "sinfo.txt", out).err
    checked = call("validate", out, "--json").record
    assert (checked["trace"]["jobs"], checked["trace"]["gpus"], checked["warnings"]) == (5, 16, [])
    assert call("simulate", out, "--policy", "fifo", "--json").record["metrics"]["finished"] == 5


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (("slurm", "a", "b"), "there is no importer called 'slurm'"),
        (("openb", "a"), "expected 2: nodes"),
        (("sacct", "sacct.txt", "sinfo.txt", "out.xlsx"), "a trace of jobs is written to a folder"),
        (("sacct", "sacct.txt", "sinfo.txt", "out", "--tier", "1"), "did you mean 'tiers'"),
    ],
)
def test_refused(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: tuple[str, ...], words: str
) -> None:
    samples.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    ended = call("import", *tokens)
    assert ended.code == 2
    assert words in " ".join(ended.err.split())


def test_a_job_that_no_region_can_hold_is_named(call: Call, tmp_path: Path) -> None:
    for path in SMALL.iterdir():
        more = "huge,0,1,400,8,60,ed69ec,0,60\n" if path.name == "submissions.csv" else ""
        (tmp_path / path.name).write_text(path.read_text() + more)
    head = (SMALL / "submissions.csv").read_text().splitlines()[0]
    assert head == "job,submitted_s,tier,tasks,gpus,duration_s,home_region,checkpoint_s,restart_s"
    ended = call("validate", tmp_path)
    assert ended.code == 0, ended.err
    assert "no region can ever hold this job" in " ".join(ended.out.split())
    assert "'huge'" in ended.out
    strict = call("validate", tmp_path, "--strict")
    assert (strict.code, "'huge'" in strict.err) == (2, True)
    assert "GPU-days" in call("validate", SMALL).out
