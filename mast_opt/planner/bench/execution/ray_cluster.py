"""The runs of a suite spread over a Ray cluster that exists already.

Each run still is a process of its own, on a node that has as many processors free as the trial has threads. What
else runs on that node is not ours to say, so these runs are not pinned and their results say so. Instances in files
and peers have to lie at the same paths on every node.
"""

from collections.abc import Sequence
from typing import Any

from mast_opt.core.executor import connected_ray
from mast_opt.planner.bench.execution.environment import machine
from mast_opt.planner.bench.execution.runner import Outcomes
from mast_opt.planner.bench.execution.subprocess_run import PATIENCE_S, run_child
from mast_opt.planner.bench.results.store import Ended
from mast_opt.planner.bench.suites.suite import Trial


class Cluster:
    """A connection to a cluster, to be handed to ``execute`` as ``spread``.

    Args:
        address: see ``connected_ray``.
        patience_s: beyond twice its limit, before a run is killed.

    Raises:
        BackendUnavailable: Ray is not installed, or there is no cluster at the address.
    """

    def __init__(self, address: str, patience_s: float = PATIENCE_S) -> None:
        self._ray, self._patience_s = connected_ray(address), patience_s

    def __call__(self, trials: Sequence[Trial]) -> Outcomes:
        """Outcomes in the order in which they come; a lost node is the end of its runs only."""
        ray = self._ray
        task = ray.remote(_run).options
        pending = {
            task(num_cpus=trial.threads, max_retries=0).remote(trial, self._patience_s): at
            for at, trial in enumerate(trials)
        }
        try:
            while pending:
                (ready, *_), _ = ray.wait(list(pending))
                at = pending.pop(ready)
                try:
                    outcome = ray.get(ready)
                except ray.exceptions.RayError as error:
                    lost = {"status": Ended.CRASHED.value, "error": str(error).strip().splitlines()[-1]}
                    outcome = {**lost, "runtime_s": {"wall": 0.0}, "pinned": False}
                yield at, outcome, None
        finally:
            for reference in pending:
                ray.cancel(reference, force=True)


def _run(trial: Trial, patience_s: float) -> dict[str, Any]:
    """Make a run of the suite on a node of Ray, and note its machine."""
    return {**run_child(trial, pinned=False, patience_s=patience_s), "node": machine()}
