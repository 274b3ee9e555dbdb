"""Simulated solves: the plan of an instance comes hours of virtual time after it was asked for.

The solver runs a counted number of iterations on one thread, so that the plan is the same on every machine.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Solve
from mast_opt.live.loop.slow_path import Planned
from mast_opt.planner.solving import Solution, resolve, solve


@dataclass(frozen=True)
class SolveSettings:
    """How plans of a slow path are made.

    Args:
        solver: a heuristic of its kind of problem.
        iterations: of the solver.
        takes_ms: virtual time between question and plan.
        seed: of the solver.
        params: of the solver, by name, as in ``mast_opt.solve``.
        again: iterations of a solve that goes on from the plan before; 0 to begin from scratch each time.
    """

    solver: str
    iterations: int
    takes_ms: int
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)
    again: int = 0

    def __post_init__(self) -> None:
        for name, least in (("iterations", 1), ("takes_ms", 0), ("seed", 0), ("again", 0)):
            if getattr(self, name) < least:
                raise UsageError(f"{name} of a solve is {getattr(self, name)}; expected at least {least}")


class SimulatedSolver:
    """Answers ``Solve`` commands.

    Args:
        settings: path → how its plans are made.
    """

    def __init__(self, settings: Mapping[str, SolveSettings]) -> None:
        self._settings = settings
        self._answers: list[tuple[int, int, ev.SolveEnded]] = []
        self._plans: dict[str, Planned] = {}
        self._last: dict[str, Solution[Any]] = {}

    def next_ms(self) -> int | None:
        """Time when the next simulated solve's answer is due; None if none is."""
        return self._answers[0][0] if self._answers else None

    def begin(self, now_ms: int, command: Solve) -> None:
        """Begin a simulated solve of a slow path."""
        chosen = self._settings[command.path]
        before = self._last.get(command.path)
        asked: dict[str, Any] = {"iterations": chosen.iterations, "seed": chosen.seed, "threads": 1}
        asked["params"] = chosen.params or None
        if before is None:
            found = solve(command.problem, chosen.solver, **asked)
        else:
            found = resolve(command.problem, before, chosen.solver, again=chosen.again, **asked)
        if chosen.again and found.plan is not None:
            self._last[command.path] = found
        reference = ""
        if found.plan is not None and found.verdict is not None and found.verdict.ok:
            reference = f"{command.path}-{command.seq}"
            self._plans[reference] = Planned(command.problem, found.plan)
        bound, objective = (one if one is None else float(one) for one in (found.bound, found.objective))
        ended = ev.SolveEnded(command.path, command.checksum, found.status.value, reference, bound, objective)
        heapq.heappush(self._answers, (now_ms + chosen.takes_ms, command.seq, ended))

    def answers(self, now_ms: int) -> list[ev.SolveEnded]:
        """Events of the simulated solves that are due by now."""
        due = []
        while self._answers and self._answers[0][0] <= now_ms:
            due.append(heapq.heappop(self._answers)[2])
        return due

    def plan(self, reference: str) -> Planned:
        """Plan of a simulated solve to which ``SolveEnded.plan`` refers; it is needed once."""
        return self._plans.pop(reference)
