"""CBC: the program that PuLP finds or brings along, run as a process of its own.

PuLP's own model objects are left out: they cost minutes where arrays cost seconds, and PuLP calls a solution
optimal that a time limit cut short, and drops CBC's bound. So the program is written and the answer read here.

Parser of CBC's log: incumbents, bounds, and the options that it did not understand.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError, BackendUnavailable, UnsupportedOption
from mast_opt.core.solve_result import Limit, SolveParams, Status, within_gap
from mast_opt.problems.backends.base import checked_options, load
from mast_opt.problems.backends.progress import Progress, watching
from mast_opt.problems.backends.supervise import Outcome, Run, Supervised
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.export import write_mps

NUMBER = r"(-?[0-9.]+(?:e[+-]?[0-9]+)?)"
INCUMBENT = re.compile(rf"Cbc00(?:04|12|16)I Integer solution of {NUMBER}")
TREE = re.compile(rf"Cbc0010I .* tree, {NUMBER} best solution, best possible {NUMBER}")
PARTIAL = re.compile(rf"Cbc0005I Partial search - best objective {NUMBER} \(best possible {NUMBER}\)")
SIGHTED = re.compile(r"Cbc0038I Solution found of")
RELAXATION = re.compile(rf"Continuous objective value is {NUMBER}")
INFEASIBLE = re.compile(r"Problem is infeasible - tightenPrimalBounds!")
"""CBC's last words before it crashes where preprocessing is off: bounds of columns leave a row no room."""
LOWER = re.compile(rf"Lower bound: +{NUMBER}")
MISUNDERSTOOD = re.compile(
    r"No match for|is illegal for|Possible options for|was provided for .* valid range|ambiguous"
)
NONE = 1e49
"""Value from which on CBC means that there is none."""
KEPT_LINES = 15


class CbcLog:
    """Reads CBC's output line by line; objectives are those of the program that it was given."""

    def __init__(self) -> None:
        self.incumbent: float | None = None
        self.bound: float | None = None
        self.sighted = False
        """Whether a heuristic speaks of a solution, though it has not handed it over yet."""
        self.infeasible = False
        self.misunderstood: list[str] = []
        self.tail: deque[str] = deque(maxlen=KEPT_LINES)

    def feed(self, line: str) -> None:
        """Take in one line of CBC's log."""
        self.tail.append(line)
        if MISUNDERSTOOD.search(line):
            self.misunderstood.append(line.strip())
        if found := INCUMBENT.search(line):
            self._solution(found[1])
        elif found := TREE.search(line) or PARTIAL.search(line):
            self._solution(found[1])
            self._bound(found[2], 1e-7, 0.0)
        elif SIGHTED.search(line):
            self.sighted = True
        elif INFEASIBLE.search(line):
            self.infeasible = True
        elif found := RELAXATION.search(line):
            self._bound(found[1], 1e-5, 0.0)
        elif found := LOWER.search(line):
            self._bound(found[1], 0.0, 1e-3)

    def _solution(self, text: str) -> None:
        """Note the value of a solution that the log states."""
        value = float(text)
        if abs(value) < NONE and (self.incumbent is None or value < self.incumbent):
            self.incumbent = value

    def _bound(self, text: str, relative: float, absolute: float) -> None:
        """A bound as printed, less what the printed digits may hide."""
        value = float(text)
        if abs(value) < NONE:
            safe = value - relative * abs(value) - absolute
            self.bound = safe if self.bound is None else max(self.bound, safe)


GOVERNED = {
    **dict.fromkeys(("sec", "seconds", "timeMode", "timeM"), "time_limit_s"),
    **dict.fromkeys(("ratio", "ratioGap", "allow", "allowableGap"), "gap"),
    **dict.fromkeys(("randomSeed", "randomS", "randomCbcSeed", "randomC"), "seed"),
    **dict.fromkeys(("thread", "threads"), "threads"),
    **dict.fromkeys(("mips", "mipstart"), "start"),
}
NODE_LIMIT = "maxNodes"
PREPROCESS = "preprocess"
INTEGER_TOLERANCE = 1e-9
"""Tolerance of integers. At its default of 1e-6, CBC drops plans where a row has coefficients from 1e-3 to 1e7; options
may set another."""
GRACE_S = 10.0
"""Seconds that CBC may take to write its answer after it was asked to stop; then it is killed."""
SPAWNING = {"start_new_session": True} if os.name == "posix" else {}
"""A process group of its own, so that Ctrl-C in a terminal reaches us alone."""


class Cbc(Supervised):
    """CBC 2.10 or later, through its command line."""

    name = "cbc"
    package = "pulp>=3.3,<4"

    def version(self) -> str:
        """The version that the program prints. Raises BackendUnavailable if there is no program that runs here."""
        path = self._path()
        try:
            output = subprocess.run([path, "-quit"], capture_output=True, text=True, timeout=30, check=True).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise BackendUnavailable(f"{path} does not run here: {error}") from error
        found = re.search(r"Version: *(\S+)", output)
        return found[1] if found else "unknown"

    def _path(self) -> str:
        """Path of the CBC executable. Raises BackendUnavailable if there is none."""
        pulp = load("pulp", self)
        bundled = str(pulp.PULP_CBC_CMD.pulp_cbc_path)
        if os.access(bundled, os.X_OK):
            return bundled
        own = pulp.COIN_CMD().available()
        if not own:
            raise BackendUnavailable("PuLP brings no CBC for this machine; install one with: pip install 'pulp[cbc]'")
        return str(own)

    def _minimise(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Minimise a program with CBC; an answer that may be wrong is checked by another run."""
        first = self._run(mip, params, progress)
        if first.status not in (Status.OPTIMAL, Status.INFEASIBLE) or not mip.integral.any():
            return first
        plain = any(name.casefold() == PREPROCESS and value in ("off", False) for name, value in params.options)
        again = replace(params, start=first.x, options=(*params.options, (PREPROCESS, "on" if plain else "off")))
        try:
            return _confirmed(mip, params, first, self._run(mip, again, progress))
        except BackendError as error:
            return _unproven(first, f"by a second search: {error}")

    def _run(self, mip: Mip, params: SolveParams, progress: Progress) -> Outcome:
        """Run CBC once on a program in a temporary folder."""
        with tempfile.TemporaryDirectory(prefix="mast-opt-") as folder:
            return _Run(self._path(), Path(folder), mip, params, progress).outcome()


def _confirmed(mip: Mip, params: SolveParams, first: Outcome, second: Outcome) -> Outcome:
    """A proof of CBC counts where its search with preprocessing and the one without come to the same.

    CBC 2.10.3 calls 3 of 820 small random programs optimal above their minimum, and without preprocessing it ends in
    a crash or a wrong answer on others.
    """
    if first.x is None or second.x is None:
        both = first.status is second.status is Status.INFEASIBLE
        if both:
            return first
        return _unproven(first if second.x is None else second, f"by a second search: {second.message}")
    values = mip.objective(first.x), mip.objective(second.x)
    better = first if values[0] <= values[1] else second
    if second.status is Status.OPTIMAL and within_gap(max(values), min(values), params.gap, claimed=True):
        return better
    return _unproven(better, f"by a second search: {second.message}")


def _unproven(outcome: Outcome, why: str) -> Outcome:
    """Outcome of CBC without its proof, for a reason."""
    status = Status.NO_SOLUTION if outcome.x is None else Status.FEASIBLE
    return Outcome(status, outcome.x, None, outcome.limit or Limit.OTHER, f"{outcome.message}; not confirmed {why}")


class _Run(Run):
    """One solve: the files, the command line, the log, the answer."""

    def __init__(self, path: str, folder: Path, mip: Mip, params: SolveParams, progress: Progress) -> None:
        super().__init__(mip, params, progress)
        self._folder = folder
        self._log = CbcLog()
        self._told_at: float | None = None
        write_mps(self._scaled.mip, folder / "program.mps", readable=False)
        self._command = [path, *self._arguments()]

    def outcome(self) -> Outcome:
        """Run CBC, and return its outcome."""
        try:
            process, output = _spawn(self._command, self._folder)
        except OSError as error:
            raise BackendUnavailable(f"{self._command[0]} does not run here: {error}") from error
        try:
            with closing(output), watching(self._relay, lambda: self._stop(process)):
                for line in output:
                    self._log.feed(line)
                    self._relay.call(self._report)
                    if self._log.misunderstood:
                        break
                else:
                    process.wait()
        finally:
            process.kill()
            process.wait()
        self._relay.reraise()
        if self._log.misunderstood:
            options = " ".join(f"{name}={value!r}" for name, value in self._params.options)
            raise UnsupportedOption(f"CBC does not accept all of {options}: {'; '.join(self._log.misunderstood)}")
        return self._answer(process.returncode)

    def _answer(self, code: int) -> Outcome:
        """Outcome that CBC's answer file and log state."""
        words = self._first_line()
        bound = None if self._log.bound is None else self._scaled.to_original_objective(self._log.bound)
        if words is None:
            return self._without_answer(code, bound)
        if words.startswith(("Infeasible", "Integer infeasible")):
            if self._progress.remaining_s(self._params.time_limit_s) == 0:  # cut off in preprocessing, it may be wrong
                return Outcome(Status.NO_SOLUTION, None, bound, Limit.TIME, f"{words}, said when the time was up")
            return Outcome(Status.INFEASIBLE, message=words)
        if words.startswith("Unbounded"):
            return Outcome(Status.UNBOUNDED, message=words)
        if words.startswith("Optimal"):
            x = self._x()
            whole_search = "within gap tolerance" not in words
            return Outcome(Status.OPTIMAL, x, self._mip.objective(x) if whole_search else bound, message=words)
        if not words.startswith("Stopped"):
            raise BackendError(f"CBC gave an answer of an unknown kind: {words}")
        limit = Limit.TIME if " on time" in words else Limit.ITERATIONS
        if self._relay.stop:
            limit = self._relay.limit
        if "no integer solution" in words or not self._mip.integral.any():
            return Outcome(Status.NO_SOLUTION, None, bound, limit, words)
        return Outcome(Status.FEASIBLE, self._x(), bound, limit, words)

    def _without_answer(self, code: int, bound: float | None) -> Outcome:
        """Outcome of CBC without an answer file: stopped, infeasible, or an error."""
        if self._relay.stop:
            words = "CBC was stopped before it could answer"
            return Outcome(Status.NO_SOLUTION, None, bound, self._relay.limit, words)
        if self._log.infeasible:
            return Outcome(Status.INFEASIBLE, message="Infeasible by the bounds of columns")
        raise BackendError(f"CBC ended with code {code} and no answer: {' / '.join(self._log.tail)}")

    def _arguments(self) -> list[str]:
        """Command line arguments of CBC."""
        params = self._params
        arguments = ["program.mps", "-integerTolerance", repr(INTEGER_TOLERANCE)]
        for name, value in checked_options("CBC", params, GOVERNED, NODE_LIMIT):
            if not re.fullmatch(r"[A-Za-z]+", name):
                raise UnsupportedOption(f"CBC does not accept option {name}: expected letters only, as in 'cuts'")
            text = {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
            arguments += [f"-{name}", text]
        # CBC measures the gap by the larger of objective and bound
        arguments += ["-ratioGap", repr(params.gap / (1 + params.gap)), "-allowableGap", "0"]
        arguments += ["-randomSeed", str(params.seed + 1), "-randomCbcSeed", str(params.seed + 1)]
        if params.threads is not None and params.threads > 1:
            arguments += ["-threads", str(params.threads)]
        if params.start is not None and self._mip.integral.any():
            self._write_start(params.start)
            arguments += ["-mipstart", "start.txt"]
        remaining = self._progress.remaining_s(params.time_limit_s)
        if remaining is not None:
            arguments += ["-seconds", repr(remaining), "-timeMode", "elapsed"]
        return [*arguments, "-solve", "-solution", "answer.txt", "-saveSolution", "answer.bin"]

    def _write_start(self, start: FloatArray) -> None:
        """Write the start's integer columns in CBC's format."""
        columns = np.flatnonzero(self._mip.integral)
        whole = np.clip(np.round(start), self._mip.col_lower, self._mip.col_upper)[columns]
        lines = [f"{at} c{at} {value:.17g} 0\n" for at, value in zip(columns.tolist(), whole.tolist(), strict=True)]
        (self._folder / "start.txt").write_text("Stopped on iterations - objective value 0\n" + "".join(lines))

    def _first_line(self) -> str | None:
        """First line of CBC's answer file; None until it is whole."""
        path = self._folder / "answer.txt"
        if not path.exists() or not (self._folder / "answer.bin").exists():
            return None
        with path.open() as file:
            return file.readline().strip() or None

    def _x(self) -> FloatArray:
        """The columns of CBC's answer at full precision: two counts, the objective, row activities and duals, then the
        columns.
        """
        with (self._folder / "answer.bin").open("rb") as file:
            rows, columns = np.fromfile(file, np.int32, 2)
            numbers = np.fromfile(file, np.float64)
        if columns != len(self._mip.cost) or len(numbers) != 1 + 2 * rows + 2 * columns:
            raise BackendError(f"CBC wrote an answer of {columns} columns to a program of {len(self._mip.cost)}")
        return self._scaled.to_original(numbers[1 + 2 * rows : 1 + 2 * rows + columns])

    def _report(self) -> None:
        """Report incumbent and bound of CBC's log to the solve."""
        known = (self._log.incumbent, self._log.bound)
        self._progress.update(
            *(None if value is None else self._scaled.to_original_objective(value) for value in known)
        )

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        """Ask CBC to stop: once, so that CBC writes the incumbent; insist when it has none or takes too long."""
        if self._log.incumbent is None and not self._log.sighted:
            process.kill()
        elif self._told_at is None:
            self._told_at = time.monotonic()
            self._progress.answering = True
            process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        elif time.monotonic() - self._told_at > GRACE_S:
            process.kill()


def _spawn(command: list[str], folder: Path) -> tuple[subprocess.Popen[bytes], Generator[str]]:
    """The solver's process and its output as it comes. A pipe would be filled by the block, so a terminal is lent
    instead.

    Where ``_tied`` can be had, CBC is killed when this process ends in whatever way, instead of working on for nobody.
    """
    options: dict[str, Any] = {"cwd": folder, "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, **SPAWNING}
    if sys.platform == "win32":
        process = subprocess.Popen(command, stdout=subprocess.PIPE, **options)
        assert process.stdout is not None
        return process, (line.decode(errors="replace") for line in process.stdout)
    reader, writer = os.openpty()
    try:
        process = subprocess.Popen([*_tied(), *command], stdout=writer, **options)
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return process, _lines(reader)


@cache
def _tied() -> tuple[str, ...]:
    """Command prefix for a solver's process that ends with its parent: ``setpriv`` of util-linux 2.33 or later; empty
    elsewhere.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    tied = (setpriv, "--pdeathsig", "KILL", "--")
    tried = subprocess.run([*tied, "true"], stdin=subprocess.DEVNULL, capture_output=True)
    return tied if tried.returncode == 0 else ()


def _lines(descriptor: int) -> Generator[str]:
    """Complete lines of a solver's output from a terminal, until the other side has closed it."""
    rest = b""
    with os.fdopen(descriptor, "rb", buffering=0) as terminal:
        while True:
            try:
                block = terminal.read(65536)
            except OSError:  # how Linux says that nobody writes any more
                return
            if not block:
                return
            *complete, rest = (rest + block).split(b"\n")
            yield from (line.decode(errors="replace").rstrip("\r") for line in complete)
