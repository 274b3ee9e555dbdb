"""Faults planted in copies of the live system and of the trusted base, and what finds each: tests next to it, or else
the service in virtual time.

    python -m benchmarks.planted_faults
    python -m benchmarks.planted_faults --only streams
    python -m benchmarks.planted_faults --only problems/        # the trusted base

``planted-faults.toml`` lists them. The tests have to pass without any of them. The exit code is 1 if one survives.
Processor time of each is what finding it took.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from benchmarks.mutation import PYTEST, copy_project

FAULTS: list[dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("planted-faults.toml").read_text(encoding="utf-8")
)["fault"]
LIVE = "live/"
"""Where the files are that the simulation runs."""
SIMULATION = ("-m", "tests.service.random_runs", "--seeds", "10", "--turns", "300")
TIME_LIMIT_S = 900


def fails(folder: Path, *command: str) -> str:
    """What fails in the copy, in one line; empty if nothing does. What takes too long fails. Tests that do not run show
    nothing, and end the program."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, *command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        said = process.communicate(timeout=TIME_LIMIT_S)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "it does not end"
    of_tests = "pytest" in command
    assert process.returncode in (0, 1) or not of_tests, said[-2000:]
    lines = [line for line in said.splitlines() if not of_tests or line.startswith("FAILED ")]
    assert process.returncode == 0 or lines, said[-2000:]
    return lines[-1].removeprefix("FAILED ")[:160] if process.returncode else ""


def tests_of(fault: dict[str, str]) -> tuple[str, ...]:
    return (*PYTEST, *fault["tests"].split())


def found_by(folder: Path, fault: dict[str, str]) -> str:
    """What finds a fault: a test next to it, or else the simulation; empty if nothing does."""
    path = folder / "mast_opt" / fault["file"]
    original = path.read_text(encoding="utf-8")
    assert original.count(fault["was"]) == 1, fault
    path.write_text(original.replace(fault["was"], fault["becomes"]), encoding="utf-8")
    try:
        by = fails(folder, *tests_of(fault))
        return by or (fails(folder, *SIMULATION) if fault["file"].startswith(LIVE) else "")
    finally:
        path.write_text(original, encoding="utf-8")


def processor_s() -> float:
    """Processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="faults whose file or words have this text")
    given = parser.parse_args()
    chosen = [fault for fault in FAULTS if given.only in f"{fault['file']} {fault['words']}"]
    os.nice(10)
    survivors = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(folder)
        for tests in {tests_of(fault): fault for fault in chosen}:
            assert not (by := fails(folder, *tests)), f"without any fault: {by}"
        begun = processor_s()
        print("| fault | found by | processor time |\n|---|---|---|")
        for fault in chosen:
            since, by = processor_s(), found_by(folder, fault)
            survivors += not by
            print(f"| {fault['words']} | {by or '**nothing**'} | {processor_s() - since:.0f} s |", flush=True)
    print(f"{survivors} of {len(chosen)} survive; {(processor_s() - begun) / 60:.1f} min of processor time")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
