"""One invocation of the command line: its clock, its record for ``--json``, its words for people."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.json_record import Record, blank
from mast_opt.cli.streams import OnlyResults, console, to_stdout
from mast_opt.core.errors import InputError
from mast_opt.core.input_warning import InputWarning
from mast_opt.core.wording import counted, shown
from mast_opt.problems.kind.problem import PlanT, Problem

if TYPE_CHECKING:
    from rich.console import Console as Console

    from mast_opt.planner.io import PlanReading
else:
    Console = object  # rich is loaded only where something is shown


@dataclass(frozen=True)
class Answer:
    """How a command ends: its exit code, and how to show its result to a person."""

    exit: Exit
    show: Callable[[Console], None]


class Run:
    """Context of a command in addition to its options: its record, its console and its clock."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._began = time.perf_counter()
        self.tokens = tuple(tokens)
        options = self.tokens[: self.tokens.index("--")] if "--" in self.tokens else self.tokens
        self.json = "--json" in options
        self.stdout = OnlyResults()
        self.record: Record = blank()
        """Record that ``--json`` prints; a command fills it in as it learns more."""
        self._compiled_s = 0.0
        self._hearing = ExitStack()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the command began, without those of the phase ``compile``: what a time limit covers."""
        compile_s: float = self.record["runtime_s"]["compile"]
        return time.perf_counter() - self._began - compile_s

    def load(self) -> None:
        """Load the libraries of every kind of problem, and count that, with what came before it, as the phase
        ``compile``: the first command after an installation, or after a start of the machine, takes seconds for it."""
        from mast_opt.problems.registry import kinds

        for _ in kinds():
            pass
        self.record["runtime_s"]["compile"] += self.elapsed_s

    @contextmanager
    def phase(self, name: str, words: str = "", *, lines: bool = False) -> Iterator[None]:
        """Count the time of the block under ``runtime_s``; in a terminal, show the words if it takes long, elsewhere
        with ``lines`` only."""
        began, compiled_s = time.perf_counter(), self._compiled_s
        try:
            with self.shown(words, lines=lines):
                yield
        finally:
            inside_s = 0.0 if name == "compile" else self._compiled_s - compiled_s
            self.record["runtime_s"][name] += max(0.0, time.perf_counter() - began - inside_s)
            self.record["runtime_s"]["compile"] += inside_s

    def shown(self, words: str, *, lines: bool = False) -> AbstractContextManager[object]:
        """Show the words while the block takes long: in a terminal, and elsewhere as ``lines``."""
        if not words or sys.stderr is None or not (lines or sys.stderr.isatty()):
            return nullcontext()
        from mast_opt.planner.report.terminal.progress import Progress

        return Progress(self.err, words, lines=lines)

    def hear_compiler(self) -> None:
        """Say from now on, on stderr, when kernels are compiled, whoever asks for it, and how long that took."""
        from mast_opt.planner.solving.kernel_compilation import compilation_heard

        def report(kind: str, seconds: float | None) -> None:
            if seconds is None:
                self.say(
                    f"compiling for {kind}, once for this installation, beyond any time limit: one to five minutes"
                )
            else:
                self._compiled_s += seconds
                self.say(f"compiled in {seconds:.0f} s")

        self._hearing.close()
        self._hearing.enter_context(compilation_heard(report))

    def compile(self, problem: Problem[Any], solver: str, cancel: threading.Event) -> None:
        """Compile what a solver needs for a problem, or load it, before any time limit begins.

        Raises:
            Interrupted: cancelled before everything was compiled.
        """
        from mast_opt.planner.solving.kernel_compilation import needed, rehearse
        from mast_opt.problems.registry import kind_of

        self.hear_compiler()
        kind = kind_of(problem)
        with self.phase("compile", "compiling, once"):
            rehearse(kind, needed(kind, solver, problem), cancel)

    def close(self) -> None:
        """Hear no compiler any more."""
        self._hearing.close()

    @cached_property
    def out(self) -> Console:
        """The console on standard output, as it is now."""
        return console(sys.stdout)

    @cached_property
    def err(self) -> Console:
        """The console on standard error, as it is now."""
        return console(sys.stderr)

    def say(self, words: str, label: str = "") -> None:
        """A remark for people, on stderr; the label in front of it stands out."""
        if sys.stderr is None or sys.stderr.closed:
            return
        from rich.text import Text

        for token in self.tokens:  # a name with a line feed forges no line
            words = words.replace(token, shown(token)) if "\n" in token else words
        style = "bold red" if label == "error:" else "bold yellow"
        text = Text.assemble((f"{label} ", style), words) if label else Text(words)
        with suppress(OSError):  # nobody is listening
            self.err.print(text, soft_wrap=True)

    def plan_of(self, problem: Problem[PlanT], path: Path) -> "PlanReading[PlanT]":
        """The plan at a path, with a warning on stderr where it was made for another instance.

        Raises:
            PlanError: it does not fit the problem.
        """
        from mast_opt.planner.io import read_plan_of

        reading = read_plan_of(problem, path)
        if reading.foreign:
            self.say(reading.foreign, label="warning:")
        return reading

    def warn(self, found: Sequence[InputWarning], *, strict: bool, show: bool = True) -> None:
        """Put warnings in the record, and on stderr if ``show``.

        Raises:
            InputError: there are any, and they are to be errors (``strict``).
        """
        self.record["warnings"] = [*self.record.get("warnings", ()), *(asdict(one) for one in found)]
        if found and strict:
            lines = "\n".join(f"  {one}" for one in found)
            raise InputError(f"{counted(len(found), 'warning')}, which --strict makes errors:\n{lines}")
        if show:
            for one in found:
                self.say(str(one), label="warning:")

    def fail(self, words: str, code: Exit) -> Exit:
        """End without a result: the message on stderr, and in the record."""
        self.record["error"] = words
        self.say(words, label="" if code is Exit.INTERRUPTED else "error:")
        if self.json:
            with suppress(OSError):
                self._print_record()
        return code

    def finish(self, answer: Answer) -> Exit:
        """End with a result."""
        if self.json:
            self._print_record()
        else:
            to_stdout(lambda: answer.show(self.out))
        return answer.exit

    def _print_record(self) -> None:
        """Print the JSON record of the command."""
        text = json.dumps(self.record, allow_nan=False)
        to_stdout(lambda: print(text))
