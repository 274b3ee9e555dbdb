"""Current state of a data-placement instance: how much work is known to run somewhere, and which limits that breaks.

``replicas`` and ``current_runs`` are taken as they are. A replica outside its residency is reported as ``residency``.
"""

from collections.abc import Sequence

import numpy as np

from mast_opt.core.verdict import Violation
from mast_opt.core.wording import counted
from mast_opt.problems.data_placement.plan import Plan, fill_remote, today
from mast_opt.problems.data_placement.problem import NO_GPU, SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.data_placement.wording import cores, tb
from mast_opt.problems.kind.current_state import BrokenLimit, CurrentState, Known

_UNKNOWN_READS = ("local", "remote", "link", "sourced", "copy", "copied")
"""Limits on flows, of which an instance states nothing."""
MONEY_TERMS = ("running_cost", "migration_cost", "egress")
"""Terms in USD."""
MONEY_COUNTS_NOTHING = (
    "It has prices, and neither running_cost nor migration_cost counts in the objective: plans do not count money."
)
"""Note where prices are stated to no effect."""


def current_state(problem: DataPlacement) -> CurrentState:
    """Share of the work whose present state is known, and every limit that today's replicas and runs break."""
    plan = today(problem) or _without_runs(problem)
    words = _Words(problem, plan)
    broken = [one for one in map(words.broken, verify(problem, plan).violations) if one is not None]
    vague = len(np.unique(problem.current_runs.workload[_vague(problem)]))
    notes = []
    if not len(problem.current_runs):
        notes.append("current_runs has no rows: where work runs is not known.")
    elif vague:
        runs = "workload runs" if vague == 1 else "workloads run"
        notes.append(f"{vague:,} {runs} on a GPU type that is not stated; figures take the first that it accepts.")
    if not money_counts(problem):
        notes.append(MONEY_COUNTS_NOTHING)
    return CurrentState(known(problem), (*broken, *_unreadable(problem, plan)), tuple(notes))


def money_counts(problem: DataPlacement) -> bool:
    """Whether the objective counts money, or the instance has no prices."""
    weights, order = problem.objective.weights, problem.objective.order
    counted = [term for term in MONEY_TERMS if (term in order if order else weights.get(term))]
    return bool(counted) or not problem.has_prices


def known(problem: DataPlacement) -> tuple[Known, ...]:
    """The part of workloads, GPUs and cores with a known run. GPUs of a run count if its type is known and accepted."""
    p = problem
    total = np.zeros(len(p.workloads), np.int64)
    np.add.at(total, p.current_runs.workload, p.current_runs.share)
    accepted = np.zeros((len(p.workloads), len(p.gpu_types) + 1), np.bool_)
    accepted[p.options.workload, p.options.gpu_type] = True
    runs = p.current_runs
    counts = accepted[runs.workload, runs.gpu_type] | _single_type(p)[runs.workload] & _untyped(p)
    on_gpus = np.zeros(len(p.workloads), np.int64)
    np.add.at(on_gpus, runs.workload[counts], runs.share[counts])
    return (
        Known("workloads", float(total.sum()) / SHARE, float(len(p.workloads))),
        Known("GPUs", _amount(p.fewest_mgpu, on_gpus), _amount(p.fewest_mgpu, np.full_like(total, SHARE))),
        Known(
            "cores", _amount(p.workloads.cpu_mcores, total), _amount(p.workloads.cpu_mcores, np.full_like(total, SHARE))
        ),
    )


def complete(problem: DataPlacement) -> bool:
    """Whether it is known for all work where it runs today, so that figures of today and of a plan compare."""
    return all(one.known >= one.of for one in known(problem))


def _amount(need_milli: Ints, share: Ints) -> float:
    """Amount of work that shares of needs add up to, from thousandths."""
    total: int = sum(need * part for need, part in zip(need_milli.tolist(), share.tolist()))
    return total / SHARE / 1000


def _untyped(problem: DataPlacement) -> Bools:
    """Mask [C] of the runs that state no GPU type."""
    untyped: Bools = np.equal(problem.current_runs.gpu_type, len(problem.gpu_types))
    return untyped


def _single_type(problem: DataPlacement) -> Bools:
    """Mask [W] of the workloads that accept one type only, or need no GPU."""
    single: Bools = np.equal(np.bincount(problem.options.workload, minlength=len(problem.workloads)), 1)
    return single


def _vague(problem: DataPlacement) -> Bools:
    """Mask [C] of the runs that leave open which of several types they use."""
    return _untyped(problem) & ~_single_type(problem)[problem.current_runs.workload] & (problem.current_runs.share > 0)


def _without_runs(problem: DataPlacement) -> Plan:
    """Plan of today's replicas, in which no work runs."""
    none = [np.zeros(0, np.int64) for _ in range(13)]
    return Plan(problem.datasets.stored.copy(), *none)


def _unreadable(problem: DataPlacement, plan: Plan) -> list[BrokenLimit]:
    """Reads that today's replicas cannot serve: stored nowhere, remote where that is forbidden, or over no link."""
    p = problem
    workload, dataset, source, target, _ = fill_remote(p, p.datasets.stored, *plan.rows("run"))
    reached = np.ones((len(p.datasets), len(p.regions)), np.bool_)
    if p.links is not None:
        linked = np.zeros((len(p.regions), len(p.regions)), np.bool_)
        linked[p.links.source, p.links.target] = True
        reached = p.datasets.stored @ linked
    found = []
    for w, i, q, r in zip(workload.tolist(), dataset.tolist(), source.tolist(), target.tolist()):
        if q < 0:
            why = "which is stored nowhere"
        elif not p.remote_reads:
            why = f"which {p.regions.labels[r]} does not hold, and remote reads are forbidden"
        elif not reached[i, r]:
            why = f"which {p.regions.labels[r]} does not hold, and no link brings it there"
        else:
            continue
        index = (p.workloads.labels[w], p.datasets.labels[i], p.regions.labels[r])
        found.append(BrokenLimit("local", index, f"{index[0]} runs in {index[2]} and reads {index[1]}, {why}"))
    return found


class _Words:
    """A violation of the verifier as a sentence about today."""

    def __init__(self, problem: DataPlacement, plan: Plan) -> None:
        self.p = problem
        self.rows = np.bincount(plan.run_workload, minlength=len(problem.workloads))
        self.at = {
            axis: {name: position for position, name in enumerate(names)}
            for axis, names in (("workload", problem.workloads.labels), ("region", problem.regions.labels))
        }
        self.options = set(zip(problem.options.workload.tolist(), problem.options.gpu_type.tolist()))
        self.types = {name: position for position, name in enumerate((*problem.gpu_types, NO_GPU))}

    def broken(self, violation: Violation) -> BrokenLimit | None:
        """None for what today's placement of data does not state: work without a known run, and flows."""
        name, index = violation.constraint, violation.index
        if name in _UNKNOWN_READS or name == "served":
            return None
        if name == "run" and violation.limit and self.rows[self.at["workload"][index[0]]] < 2:
            return None
        return BrokenLimit(name, index, self._message(violation))

    def _message(self, violation: Violation) -> str:
        """Message on a limit of data placement that the present state breaks."""
        name, index, over, limit = violation.constraint, violation.index, violation.amount, violation.limit
        if name == "storage":
            return f"storage of {index[0]} ({tb(limit)} usable) is exceeded by {tb(over)}"
        if name == "cpu":
            return f"CPU of {index[0]} ({cores(limit)}) is exceeded by {cores(over)}"
        if name == "quota":
            return f"CPU quota of {index[1]} in {index[0]} ({cores(limit)}) is exceeded by {cores(over)}"
        if name == "copies":
            held = int(self.p.datasets.stored[self.p.datasets.labels.index(index[0])].sum())
            side = "at most" if held > limit else "at least"
            return f"dataset {index[0]} has {counted(held, 'replica')}; expected {side} {limit:g}"
        if name == "place" and not limit:
            return f"dataset {index[0]} has a replica in {index[1]}, where it is forbidden"
        if name == "place":
            return f"dataset {index[0]} has no replica in {index[1]}, where it is pinned"
        if name == "residency" and len(index) == 2:
            where = f"dataset {index[0]} has a replica in {index[1]}, outside its residency"
            return f"{where}; it may only be a source of copies"
        if name == "residency":
            return f"{index[0]} reads {index[1]} in {index[2]}, outside the residency of the data"
        if name == "run":
            return self._run(index, split=bool(limit))
        return str(violation)

    def _run(self, index: Sequence[str], *, split: bool) -> str:
        """Message on a workload that runs today where it may not."""
        workload, region, kind = index
        w, r, k = self.at["workload"][workload], self.at["region"][region], self.types[kind]
        if split:
            return f"{workload} is split over regions or GPU types and is not splittable"
        on = "without a GPU" if k == len(self.p.gpu_types) else f"on {kind}"
        if (w, k) not in self.options:
            return f"{workload} runs in {region} {on}, which it does not accept"
        if self.p.workloads.forbidden[w, r]:
            return f"{workload} runs in {region}, where it is forbidden"
        if not self.p.ruled[w, r]:
            return f"{workload} runs in {region}, and it is pinned to another region"
        if not self.p.allowed[w, r]:
            return f"{workload} runs in {region}, outside the residency of its data"
        return f"{workload} runs in {region} {on}, and {region} has no supply of it"
