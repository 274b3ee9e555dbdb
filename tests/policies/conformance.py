"""Conformance suite of policies, those of other packages too: inherit ``Conformance`` and name one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.simulation.run import SimulatedRun, run_trace
from mast_opt.live.simulation.traces.trace import read_trace

TRACE = Path(__file__).parents[2] / "instances/traces/tiresias-60"


class Conformance:
    """The suite: a run of 60 jobs under the policy."""

    policy: ClassVar[str]
    params: ClassVar[Mapping[str, str]] = {}

    def run(self, until_ms: int | None = None) -> SimulatedRun:
        return run_trace(read_trace(TRACE), self.policy, self.params, until_ms=until_ms)

    def test_every_job_ends_and_the_log_is_right(self) -> None:
        done = self.run()
        assert check_log(done.events(), all_end=True, durations=True) == ()
        found = metrics(done.rows)
        assert (found.jobs, found.finished) == (60, 60)

    def test_equal_runs_are_equal(self) -> None:
        assert list(self.run().events()) == list(self.run().events())

    def test_a_run_that_is_cut_short_begins_alike(self) -> None:
        whole, part = list(self.run().events()), list(self.run(until_ms=600_000).events())
        assert 0 < len(part) < len(whole)
        assert part == whole[: len(part)]
