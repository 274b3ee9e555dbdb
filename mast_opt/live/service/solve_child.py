"""A solve in a process of its own: an instance from a folder, and back into it incumbents, the plan and the outcome.

    python -m mast_opt.live.service.solve_child FOLDER

It stops and keeps its incumbent when it is asked to (SIGTERM), and when its standard input ends, which it does with the
process that began it.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from mast_opt.core.errors import MastOptError
from mast_opt.core.solve_result import Event
from mast_opt.live.service.solve_files import FAILED, INSTANCE, OUTCOME, PLAN, SETTINGS
from mast_opt.planner.io import read
from mast_opt.planner.io.atomic import new_file
from mast_opt.planner.io.events import EVENTS, event_line
from mast_opt.planner.solving import resolve, solve, write_plan_folder
from mast_opt.problems.registry import kind_of

NICENESS = 5
"""The service comes first."""


def run(folder: Path, cancel: threading.Event) -> dict[str, Any]:
    """Solve the instance in the folder of a requested solve, and write plan and outcome; returns the outcome."""
    settings = json.loads((folder / SETTINGS).read_text())
    _limit(settings.pop("memory_mib"), settings.pop("file_mib"))
    earlier = settings.pop("from_plan")
    with (folder / EVENTS).open("w", encoding="utf-8") as progress:

        def on_event(event: Event) -> None:
            progress.write(event_line(event) + "\n")
            progress.flush()

        try:
            problem = read(folder / INSTANCE)
            asked = {**settings, "on_event": on_event, "cancel": cancel}
            if earlier:
                way = kind_of(problem).solvers.continuation(settings["solver"])
                solution = resolve(problem, earlier, again=None if way is None else way.rounds, **asked)
            else:
                solution = solve(problem, **asked)
            if solution.plan is not None:
                write_plan_folder(problem, solution, folder / PLAN)
            found = {"status": solution.status.value, "objective": solution.objective, "bound": solution.bound}
            outcome: dict[str, Any] = {**found, "error": ""}
        except (MastOptError, MemoryError, OSError) as error:
            outcome = {"status": FAILED, "objective": None, "bound": None, "error": str(error) or "out of memory"}
    with new_file(folder / OUTCOME) as draft:
        draft.write_text(json.dumps(outcome))
    return outcome


def _limit(memory_mib: int, file_mib: int) -> None:
    """Bound the memory of this process, which solves, and the files that it writes, where the system can."""
    if os.name == "posix":
        import resource

        for what, mib in ((resource.RLIMIT_AS, memory_mib), (resource.RLIMIT_FSIZE, file_mib)):
            resource.setrlimit(what, (mib * 2**20, resource.getrlimit(what)[1]))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead


def main() -> None:
    """Run the process of a solve that the service has begun."""
    folder, cancel = Path(sys.argv[1]), threading.Event()
    os.nice(NICENESS)
    signal.signal(signal.SIGTERM, lambda number, frame: cancel.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal; the service says when to stop

    def watch() -> None:
        while os.read(0, 4096):
            pass
        cancel.set()

    threading.Thread(target=watch, daemon=True).start()
    run(folder, cancel)


if __name__ == "__main__":
    main()
