"""What the service promises, tested in full: kills, outages, random faults, damage, its document.

    python -m benchmarks.guarantees --out out/guarantees.md
    python -m benchmarks.guarantees --short --only kill
    python -m benchmarks.guarantees --only kill --with '--points 20 --seed 1' --rows benchmarks/data/guarantees.jsonl

Every test is a process of its own, and what it prints is its result. As many run at a time as there are cores, unless
``--at-a-time`` says otherwise. One that tested nothing does not hold. The exit code is 1 if one fails. Needs the groups
``test``, ``test-live`` and ``schema``, and PostgreSQL for what is about it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Guarantee:
    """A test of a promise.

    Args:
        name: for ``--only``.
        promise: in words.
        module: that is run.
        full, short: its arguments.
    """

    name: str
    promise: str
    module: str
    full: str
    short: str


GUARANTEES = (
    Guarantee(
        "kill",
        "`kill -9` while four clients submit: what was acknowledged is in the log, once",
        "tests.service.kills",
        "--points 200 --seed 1",
        "--points 3 --seed 1",
    ),
    Guarantee(
        "outage",
        "a leader paused past its lease writes no more; PostgreSQL restarts and crashes under load",
        "tests.service.outages",
        "--times 20 --seed 1",
        "--times 1 --seed 1",
    ),
    Guarantee("hosts", "every host passes one conformance suite", "pytest", "-q tests/hosts", "-q tests/hosts"),
    Guarantee(
        "random",
        "the whole service in virtual time under one seed: requests cut, late or doubled, commits that fail or kill, "
        "full disk, stale looks, a clock that goes back",
        "tests.service.random_runs",
        "--seeds 200 --turns 500",
        "--seeds 10 --turns 150",
    ),
    Guarantee(
        "damage",
        "a byte flipped and the tail cut at every page, a full disk, two writers: refused by name",
        "pytest",
        "-q tests/store",
        "-q tests/store",
    ),
    Guarantee(
        "document",
        "requests as the OpenAPI document allows and forbids them: the right status, a reason, no 5xx",
        "tests.service.schema_run",
        "--examples 200 --seed 1",
        "--examples 10 --seed 1",
    ),
    Guarantee(
        "interface",
        "bad input, tokens, keys, restarts, commands given again, solves that keep their incumbents",
        "pytest",
        "-q tests/service",
        "-q tests/service/test_api.py tests/service/test_live.py",
    ),
)


def tested(one: Guarantee, arguments: str) -> tuple[bool, str, float]:
    """Whether it holds, the result in words, and wall seconds."""
    begun = time.perf_counter()
    found = subprocess.run(
        [sys.executable, "-m", one.module, *arguments.split()], cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = result_of(one.module, found.stdout)
    holds = found.returncode == 0 and bool(lines)
    if not holds:
        print(found.stdout + found.stderr, file=sys.stderr)
    return holds, "; ".join(lines) if holds else "**does not hold**", time.perf_counter() - begun


def result_of(module: str, said: str) -> list[str]:
    """The lines of a test's result; none where it has tested nothing, such as pytest where no test has passed."""
    lines = [line for line in said.splitlines() if line.strip()]
    return lines if module != "pytest" else [line for line in lines[-1:] if " passed" in line]


def table(rows: Sequence[tuple[Guarantee, str, float]]) -> str:
    lines = ["| promise | result | minutes |", "|---|---|---|"]
    lines += [f"| {one.promise} | {words} | {seconds / 60:.1f} |" for one, words, seconds in rows]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", nargs="*", choices=[one.name for one in GUARANTEES])
    parser.add_argument("--with", dest="arguments", help="in place of the arguments of the test")
    parser.add_argument("--out", type=Path, help="a table of Markdown")
    parser.add_argument("--rows", type=Path, help="file to which each result is added, a line of JSON")
    parser.add_argument("--at-a-time", type=int, default=os.cpu_count() or 1, help="tests that run at once")
    given = parser.parse_args()
    asked = [one for one in GUARANTEES if not given.only or one.name in given.only]
    arguments = [given.arguments or (one.short if given.short else one.full) for one in asked]
    rows, failed = dict[str, tuple[Guarantee, str, float]](), False
    with ThreadPoolExecutor(given.at_a_time) as workers:
        begun = {workers.submit(tested, *test): test for test in zip(asked, arguments)}
        for done in as_completed(begun):
            (one, said), (holds, words, seconds) = begun[done], done.result()
            failed |= not holds
            rows[one.name] = one, words, seconds
            print(f"{one.name}: {words} ({seconds:.0f} s)", flush=True)
            if given.out is not None:
                given.out.parent.mkdir(parents=True, exist_ok=True)
                given.out.write_text(table([rows[one.name] for one in asked if one.name in rows]))
            if given.rows is not None:
                row = {"promise": one.promise, "result": words, "command": f"python -m {one.module} {said}"}
                with given.rows.open("a") as out:
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
