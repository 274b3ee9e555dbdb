"""Conformance suite of heuristics, those of other packages too: inherit ``Conformance`` and name one."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

import mast_opt
from mast_opt.core.solve_result import Limit


class Conformance:
    """The suite. ``solve`` verifies every plan, so what is tested here is how a search begins, goes on and ends."""

    kind: ClassVar[str]
    solver: ClassVar[str]
    sizes: ClassVar[Mapping[str, int]] = {}
    """Sizes of the generated instance."""
    constructive: ClassVar[bool] = False
    """Whether it builds one plan and ends, so that it takes neither a start nor a number of iterations."""

    def problem(self) -> Any:
        return mast_opt.generate(self.kind, None, seed=1, **dict(self.sizes))

    def solved(self, iterations: int = 3, **limits: Any) -> mast_opt.Solution[Any]:
        asked = {} if self.constructive else {"iterations": iterations}
        return mast_opt.solve(self.problem(), self.solver, threads=1, **{**asked, **limits})

    def test_it_finds_a_plan_and_says_why_it_ended(self) -> None:
        found = self.solved()
        assert found.plan is not None, found.message
        assert found.solver == self.solver
        assert found.limit in (None, Limit.ITERATIONS)
        assert found.objective is not None
        assert found.bound is None or found.bound <= found.objective

    def test_equal_seeds_give_equal_plans(self) -> None:
        first, second = self.solved(seed=7), self.solved(seed=7)
        assert pickle.dumps(first.plan) == pickle.dumps(second.plan)

    def test_a_request_to_stop_ends_it(self) -> None:
        cancel = threading.Event()
        cancel.set()
        try:
            found = self.solved(iterations=10**9, cancel=cancel)
        except mast_opt.Interrupted:  # it had no plan yet
            return
        assert found.limit is Limit.INTERRUPT

    def test_it_reports_what_it_returns(self) -> None:
        reported: list[float] = []

        def note(event: mast_opt.Event) -> None:
            if event.incumbent is not None:
                reported.append(event.incumbent)

        found = self.solved(on_event=note)
        assert reported[-1:] == ([] if self.constructive else [pytest.approx(found.objective, rel=1e-6)])
        assert reported == sorted(reported, reverse=True)

    def test_a_start_is_never_made_worse(self) -> None:
        if self.constructive:
            return
        first = self.solved()
        again = mast_opt.solve(self.problem(), self.solver, threads=1, iterations=1, start=first.plan)
        assert again.objective is not None
        assert first.objective is not None
        assert again.objective <= first.objective * (1 + 1e-9)
