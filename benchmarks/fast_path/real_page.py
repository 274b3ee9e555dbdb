"""The part of the study's page on batches of real servers, pods and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.fast_path.real import (
    IN_BID_ORDER,
    IN_ORDER,
    OPTIMUM,
    OURS,
    PROOF_S,
    REAL,
    REPAIR_S,
    RealRecords,
    RealRun,
)

PLACEMENT_TARGETS = (("exhaustive", 0.01, 0.05), ("exhaustive+repair", 0.002, 0.02))
"""Mean and worst gap to stay within: of placement alone, and of everything."""
MOST_SHOWN = 5


@dataclass(frozen=True)
class Batch:
    """All runs of one batch."""

    name: str
    seed: int
    runs: dict[str, RealRun]

    @property
    def proven(self) -> bool:
        """Whether the optimum and both optima in queue order are proven."""
        return all(self.runs[name].proven for name in (OPTIMUM, IN_ORDER, IN_BID_ORDER))

    def gap(self, better: str, worse: str) -> float:
        """What one admits more than the other, as a share of what the optimum admits."""
        best = self.runs[OPTIMUM].value
        return (self.runs[better].value - self.runs[worse].value) / best if best else 0.0


def batches_of(records: RealRecords) -> list[Batch]:
    """The batches of which every run is there."""
    found = []
    for kind in REAL:
        for seed in range(kind.seeds):
            keys = {name: (kind.name, seed, name) for name in (OPTIMUM, IN_ORDER, IN_BID_ORDER, *OURS)}
            if all(key in records.runs for key in keys.values()):
                found.append(Batch(kind.name, seed, {name: records.runs[key] for name, key in keys.items()}))
    return found


def real_part(records: RealRecords) -> str:
    """The text, empty where there are no records."""
    every = batches_of(records)
    proven = [batch for batch in every if batch.proven]
    if not proven:
        return ""
    parts = [_head(every, proven), _kinds(proven), _targets(proven), _tiers(proven), _bounds(proven)]
    return "\n\n".join([*parts, *_unproven(every), _worst(proven)])


def _head(every: Sequence[Batch], proven: Sequence[Batch]) -> str:
    proof = [batch.runs[OPTIMUM].cpu_s for batch in proven]
    left_out = sum(batch.runs[OPTIMUM].admitted_jobs < batch.runs[OPTIMUM].jobs for batch in proven)
    return f"""## Real servers, pods and jobs

{len(every)} batches drawn by `mast-opt import gpu-fleet`, seeds in order, none left out: servers, running and waiting
pods of Alibaba's cluster-trace-gpu-v2023 (OpenB), servers of its cluster-trace-v2026-spot-gpu, and gangs of the Philly
trace. The data are read from a folder and are not part of the project:

    python -m benchmarks.fast_path --data FOLDER

{len(proven)} have a proven optimum (HiGHS, gap 1e-4, {PROOF_S:g} s, median {np.median(proof):.1f} s of processor time)
and proven optima in queue order; in {left_out} of them something has to wait. The gap to the optimum is split, all
parts as shares of the value that the optimum admits:

- **Queue order.** The optimum against the best plan that admits in queue order: a job is admitted if some plan holds it
  with all that were admitted before it, wherever these run, and whoever is stopped. Programs that decide eight jobs
  at a time find it (`benchmarks/fast_path/queue_optimum.py`).
- **Bid order.** That plan against the best one that also stops no more than it must: tier by tier, the stops stand that
  lose the fewest GPU-hours. An urgent job then takes free GPUs, although less important ones could use only those.
- **Placement.** The best plan in bid order against the solver's: what its choice of servers gives away.

The first two are policy. A part may be negative: a plan that breaks the order may admit more, and so may one that stops
more than the optimum of the weighted objective."""


def _mean_worst(gaps: Iterable[float]) -> str:
    values = np.array(list(gaps))
    return f"{values.mean():.2%}, {values.max():.2%}"


def _kinds(proven: Sequence[Batch]) -> str:
    heads = ["batches", "number", "queue order", "bid order", "placement, `exhaustive`", "placement, `best-fit`"]
    heads.append(f"whole gap, `exhaustive+repair` in {REPAIR_S:g} s")
    lines = ["Mean and worst:", "", f"| {' | '.join(heads)} |", "|---|--:|--:|--:|--:|--:|--:|"]
    parts = [(kind.name, [batch for batch in proven if batch.name == kind.name]) for kind in REAL]
    for name, here in (*parts, ("all", list(proven))):
        if here:
            pairs = [(OPTIMUM, IN_ORDER), (IN_ORDER, IN_BID_ORDER), (IN_BID_ORDER, "exhaustive")]
            pairs += [(IN_BID_ORDER, "best-fit"), (OPTIMUM, "exhaustive+repair")]
            cells = [_mean_worst(batch.gap(*pair) for batch in here) for pair in pairs]
            lines.append(f"| {name} | {len(here)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _targets(proven: Sequence[Batch]) -> str:
    lines = ["| target | figure | |", "|---|--:|---|"]
    for solver, mean, worst in PLACEMENT_TARGETS:
        against = IN_BID_ORDER if solver == "exhaustive" else OPTIMUM
        gaps = np.array([batch.gap(against, solver) for batch in proven])
        for what, value, most in (("mean", gaps.mean(), mean), ("worst", gaps.max(), worst)):
            verdict = "met" if value <= most else "**missed**"
            lines.append(f"| `{solver}` against {against}, {what} at most {most:.1%} | {value:.2%} | {verdict} |")
    return "\n".join(lines)


def _tiers(proven: Sequence[Batch]) -> str:
    names = (OPTIMUM, IN_ORDER, IN_BID_ORDER, *OURS)
    count = max(len(batch.runs[OPTIMUM].asked) for batch in proven)
    lines = [
        "Value admitted of what each tier asks for, all batches together:",
        "",
        f"| tier | asked | {' | '.join(f'`{name}`' if name in OURS else name for name in names)} |",
        f"|--:|--:|{'--:|' * len(names)}",
    ]
    for tier in range(count):
        asked = _of_tier(proven, OPTIMUM, tier, "asked")
        shares = [_of_tier(proven, name, tier, "admitted") / asked for name in names] if asked else []
        lines.append(f"| {tier} | {asked:,.0f} | {' | '.join(f'{share:.2%}' for share in shares)} |")
    return "\n".join(lines)


def _of_tier(proven: Sequence[Batch], name: str, tier: int, what: str) -> float:
    rows = (getattr(batch.runs[name], what) for batch in proven)
    return float(sum(row[tier] for row in rows if tier < len(row)))


def _bounds(proven: Sequence[Batch]) -> str:
    optima, ours = ([batch.runs[name] for batch in proven] for name in (OPTIMUM, "exhaustive+repair"))
    stated = [(best, run) for best, run in zip(optima, ours) if best.objective and run.objective is not None]
    above = np.array([(run.objective or 0.0) / (best.objective or 1.0) - 1 for best, run in stated])
    below = np.array([1 - (run.bound or 0.0) / (best.objective or 1.0) for best, run in stated])
    return (
        f"The weighted objective of `exhaustive+repair` is {above.mean():.2%} above the proven optimum in the mean, "
        f"{above.max():.2%} at worst;\nits bound is {below.mean():.1%} below it, {below.max():.1%} at worst."
    )


def _unproven(every: Sequence[Batch]) -> list[str]:
    without = [batch for batch in every if not batch.proven]
    if not without:
        return []
    lines = ["Without a proof, and in no figure above: objective and bound of HiGHS, and of `exhaustive+repair`.", ""]
    for batch in without:
        best, ours = batch.runs[OPTIMUM], batch.runs["exhaustive+repair"]
        lines.append(f"- {batch.name}, seed {batch.seed}: {_stated(best)}; {_stated(ours)}")
    return ["\n".join(lines)]


def _stated(run: RealRun) -> str:
    bound = "none" if run.bound is None else f"{run.bound:.2f}"
    return f"{run.objective:.2f}, bound {bound}"


def _worst(proven: Sequence[Batch]) -> str:
    found = sorted(proven, key=lambda batch: -batch.gap(IN_BID_ORDER, "exhaustive"))[:MOST_SHOWN]
    lines = [
        f"- {batch.gap(IN_BID_ORDER, 'exhaustive'):.2%}: {batch.name}, seed {batch.seed}, "
        f"{batch.runs['exhaustive'].admitted_jobs} jobs for {batch.runs[IN_BID_ORDER].admitted_jobs}"
        for batch in found
    ]
    return "\n".join(["The largest gaps of placement:", "", *lines])
