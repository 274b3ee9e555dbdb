"""Progress of a suite: a line a run for the log, and in a terminal a bar with the time that is left."""

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from mast_opt.core.wording import percent, plain, seconds
from mast_opt.planner.bench.execution.runner import FinishedRun
from mast_opt.planner.bench.suites.suite import Trial


class BenchProgress:
    """Progress bar of a benchmark: what has begun and what has ended.

    Args:
        console: where the lines go.
        runs: how many there are.
        limits_s: the sum of their time limits, the first guess of how long they take.
    """

    def __init__(self, console: Console, runs: int, limits_s: float) -> None:
        self._console = console
        self._runs = runs
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        left = TextColumn("about {task.fields[left]} left")
        self._bar = Progress(*columns, left, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=runs, left=seconds(limits_s))

    def __enter__(self) -> "BenchProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def announce(self, words: str) -> None:
        """Announce that something else than a run of the suite takes time."""
        self._console.print(words, soft_wrap=True)

    def starts(self, trial: Trial) -> None:
        """Note that a run of the suite begins."""
        self._bar.update(self._task, description=trial.label)

    def done(self, finished: FinishedRun) -> None:
        """Note that a run of the suite has ended."""
        self._bar.update(self._task, advance=1, left=seconds(finished.left_s))
        left = "" if finished.position == self._runs else f"; about {seconds(finished.left_s)} left"
        line = f"{finished.position}/{self._runs} {finished.trial.label}: {_words(finished)}{left}"
        self._console.print(line, soft_wrap=True)


def _words(finished: FinishedRun) -> str:
    """Outcome of a benchmark's run in one line: status, objective, gap, error, time."""
    result = finished.result
    parts = [result["status"]]
    if result.get("objective") is not None:
        parts.append(plain(result["objective"]))
        parts += [f"gap {percent(result['gap'])}"] if result.get("gap") is not None else []
    if result.get("error"):
        parts.append(result["error"].splitlines()[0])
    parts.append(f"in {seconds(result['runtime_s']['wall'])}")
    if finished.best_known:
        parts.append(finished.best_known)
    return ", ".join(parts)
