"""``mast-opt advise slurm``: its output and its errors. ``real_slurm`` compares it with a real one, by hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mast_opt.cli import main

DATA = Path(__file__).parent / "data"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of texts, all of one moment."""
    for file in DATA.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
        os.utime(tmp_path / file.name, (1795943705, 1795943705))
    return tmp_path


def test_a_script_and_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = folder / "train.sh"
    script.write_text("#!/bin/sh\n#SBATCH --partition=batch --nodes=1 --exclusive --time=90\nsrun train\n")
    assert main(["advise", "slurm", str(script), "--from", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["starts"] == [{"partition": "batch", "at_s": 1795949101, "nodes": ["h0"], "stops": [], "within": "s2"}]
    assert main(["advise", "slurm", str(script), "--options", "-p urgent", "--from", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("urgent", "now", "a0", "s0"))
    assert main(["advise", "slurm", str(script), "--options", "-N 9", "--from", str(folder)]) == 4


def test_what_cannot_be_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([], ["--options", "--hold"], ["--options", "-n 1", "--listen", "8000"], [str(folder / "none.sh")]):
        assert main(["advise", "slurm", *words]) == 2
    assert main(["advise", "skypilot", "--listen", "8000", "--options", "-n 1"]) == 2
    capsys.readouterr()
    monkeypatch.setenv("PATH", str(folder))
    assert main(["advise", "slurm", "--options", "-n 1"]) == 2
    assert (
        "sinfo is missing; expected Slurm's programs here (Debian: slurm-client), or --from" in capsys.readouterr().err
    )


@pytest.mark.second_tier
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1",
            "--json fails: slurm_load_jobs error",
        ),
        ("exec sleep 60", "has not answered within 0.5 s; nothing was changed"),
    ],
)
def test_a_controller_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str, message: str
) -> None:
    (tmp_path / "sinfo").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert main(["advise", "slurm", "--options", "-n 1", "--patience", "0.5"]) == 2
    assert message in capsys.readouterr().err
