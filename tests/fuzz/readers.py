"""Damages files of every format at random and reads them.

    python -m tests.fuzz.readers --seconds 600 --seed 1
    python -m tests.fuzz.readers --seed 1 --case 4711

Each case must end well or with an error of mast-opt, within ``cpu_limit`` and with ``ROOM`` bytes more than the process
has after first reads. Cases run in child processes, ``BATCH`` in each, so that a crash of native code or a hang ends a
child and is reported with the number of its case. A process of its own, the maker, damages the files, so that memory
that this takes does not count. The exit code is 1 if anything was found.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.common import Target

ROOM = 2**30
BASE_S = 10.0
"""CPU time of a case, of all threads, whatever its size."""
PER_MB_S = 5.0
"""CPU time for each MB of its files, beyond ``BASE_S``."""
SLOW = 0.5
"""Part of its CPU time from which a case is reported as slow."""
KILL_S = 180
"""Time without a word from a child after which it is killed."""
BATCH = 2000
MOST_FINDINGS = 20
_THREADS = {"POLARS_MAX_THREADS": "2", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
"""Each thread takes address space, which is what is limited."""


class Late(BaseException):
    """No reader catches this, as it might an OSError."""


def _late(number: int, frame: FrameType | None) -> None:
    raise Late("more CPU time than its size allows")


def cpu_limit(size: int) -> float:
    """Seconds of CPU time for a case with so many bytes."""
    return BASE_S + PER_MB_S * size / 1e6


def chosen_targets(only: str) -> list[Target]:
    """The targets whose name begins like this."""
    from tests.fuzz.targets import targets

    return [target for target in targets() if target.name.startswith(only)]


def maker(root: Path, cases: Path, seed: int, only: str) -> None:
    """Makes the cases whose numbers come on stdin, each a folder in ``cases``. Prints the target of each."""
    from tests.fuzz.damage import damaged

    chosen = chosen_targets(only)
    for line in sys.stdin:
        number = int(line)
        rng = random.Random(f"{seed}/{number}")
        (target,) = rng.choices(chosen, [target.weight for target in chosen])
        folder = Path(shutil.copytree(root / "sound" / target.name, cases / str(number)))
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for victim in rng.sample(files, min(len(files), rng.choice([1, 1, 1, 2]))):
            victim.write_bytes(damaged(rng, victim.name, victim.read_bytes()))
        print(target.name, flush=True)


def child(root: Path, seed: int, first: int, cases: int, only: str) -> None:
    """Runs cases and prints what becomes of each: ``CASE TARGET``, then ``sound``, ``refused`` or ``found WHAT``.

    ``slow SECONDS BYTES`` precedes it for a case that takes long.
    """
    from mast_opt.core.errors import MastOptError

    chosen = {target.name: target for target in chosen_targets(only)}
    for target in chosen.values():
        folder = root / "sound" / target.name
        if not folder.exists():
            folder.mkdir(parents=True)
            target.make(folder)
        with tempfile.TemporaryDirectory() as copy:
            target.read(Path(shutil.copytree(folder, Path(copy) / "c")))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _late)
    for number, name, folder in _made(root, seed, first, cases, only):
        target = chosen[name]
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(number, name, flush=True)
        outcome, began = "sound", time.process_time()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, most))
        signal.setitimer(signal.ITIMER_PROF, cpu_limit(size))
        try:
            target.read(folder)
        except MastOptError as error:
            outcome = "refused"
            str(error)
        except BaseException as error:  # Late and a panic of Rust are no Exception
            outcome = f"found {type(error).__name__}: {error}"[:200].replace("\n", " ")
            traceback.print_exc()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        took = time.process_time() - began
        shutil.rmtree(folder)
        if took > SLOW * cpu_limit(size):
            print(f"slow {took:.1f} s for {size:,} bytes", flush=True)
        print(outcome, flush=True)


def _made(root: Path, seed: int, first: int, cases: int, only: str) -> Iterator[tuple[int, str, Path]]:
    """(case, target, its folder) of cases that are made, one ahead of the one that is read."""
    place = Path(tempfile.mkdtemp(dir=root))
    command = [sys.executable, "-m", "tests.fuzz.readers", "--maker", str(root), str(place), "--seed", str(seed)]
    command += ["--only", only]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        print(first, file=process.stdin, flush=True)
        for number in range(first, first + cases):
            name = process.stdout.readline().strip()
            if not name:
                raise SystemExit(f"the maker ended at case {number}")
            if number + 1 < first + cases:
                print(number + 1, file=process.stdin, flush=True)
            yield number, name, place / str(number)


@dataclass
class Tally:
    """What a run has seen so far."""

    next: int
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(target, outcome) → cases"""
    findings: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)

    def found(self, seed: int, only: str, number: int, target: str, what: str) -> None:
        again = f"--seed {seed} --case {number}" + (f" --only {only}" if only else "")
        self.findings.append(f"{target}: {what} ({again})")
        print(f"FOUND {self.findings[-1]}", flush=True)


def _batch(root: Path, tally: Tally, given: argparse.Namespace, cases: int, until: float) -> None:
    """Runs a child, until it ends or has to be killed."""
    arguments = ["--child", str(root), "--seed", str(given.seed), "--first", str(tally.next), "--cases", str(cases)]
    command = [sys.executable, "-m", "tests.fuzz.readers", *arguments, "--only", given.only]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **_THREADS}
        )
        assert process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_listen, args=(process.stdout, lines), daemon=True).start()
        current, killed, ended = "", False, False
        while True:
            try:
                line = lines.get(timeout=KILL_S)
            except queue.Empty:
                process.kill()
                killed = True
                continue
            if not line:
                break
            word, _, rest = line.strip().partition(" ")
            if word.isdigit():
                current, tally.next = rest, int(word) + 1
                continue
            if word == "slow":
                tally.slow.append(f"{current}: {rest} (--seed {given.seed} --case {tally.next - 1})")
                continue
            tally.outcomes[current, word] += 1
            if word == "found":
                tally.found(given.seed, given.only, tally.next - 1, current, rest)
            current = ""
            if time.monotonic() > until or len(tally.findings) >= MOST_FINDINGS:
                process.kill()
                ended = True
                break
        code = process.wait()
        errors.seek(0)
        sys.stdout.write(errors.read())
        if not ended and (current or code):
            what = f"no word for {KILL_S} s, killed" if killed else f"the process ended with {code}"
            if not current:
                raise SystemExit(f"a child ended between cases, near case {tally.next}: {what}")
            tally.outcomes[current, "found"] += 1
            tally.found(given.seed, given.only, tally.next - 1, current, what)


def _listen(stream: IO[str], lines: queue.Queue[str]) -> None:
    for line in stream:
        lines.put(line)
    lines.put("")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=600, help="when to stop")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--first", type=int, default=0, help="number of the first case")
    options.add_argument("--cases", type=int, default=10**9, help="how many cases to run at most")
    options.add_argument("--case", type=int, help="run this case alone")
    options.add_argument("--only", default="", help="only targets whose name begins like this; it changes the cases")
    options.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--maker", type=Path, nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.case is not None:
        given.first, given.cases = given.case, 1
    if given.maker is not None:
        asked, made = given.maker
        maker(asked, made, given.seed, given.only)
        return 0
    if given.child is not None:
        child(given.child, given.seed, given.first, given.cases, given.only)
        return 0
    began = time.monotonic()
    tally = Tally(given.first)
    last = given.first + given.cases
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        while tally.next < last and time.monotonic() - began < given.seconds and len(tally.findings) < MOST_FINDINGS:
            _batch(Path(folder), tally, given, min(BATCH, last - tally.next), began + given.seconds)
    for name in sorted({target for target, _ in tally.outcomes}):
        counts = {word: tally.outcomes[name, word] for word in ("sound", "refused", "found")}
        print(f"{name:36}{counts['sound']:7} sound{counts['refused']:7} refused{counts['found']:7} found")
    total = sum(tally.outcomes.values())
    print(f"{total} cases from seed {given.seed} in {time.monotonic() - began:.0f} s; {len(tally.findings)} found")
    for slow in tally.slow:
        print(f"slow: {slow}")
    for finding in tally.findings:
        print(finding)
    return 1 if tally.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
