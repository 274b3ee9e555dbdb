"""The page of the study."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.fast_path.figures import LONG_PROOF_S, Filling, Row, fillings, optima, pairs, row_of, rows
from benchmarks.fast_path.instances import BATCHES, FILL_SEEDS, HELD_OUT
from benchmarks.fast_path.plots import draw_filling, draw_gaps
from benchmarks.fast_path.real import RealRecords
from benchmarks.fast_path.real_page import real_part
from benchmarks.fast_path.runs import EXACT, LEAST_RATIO, MOST_RATIO, REPAIR_ROUNDS, Records, Run

TARGETS = {"exhaustive": (0.02, 0.08), "exhaustive+repair": (0.003, 0.02)}
"""Mean and worst gap to stay within."""
SHOWN = ("exhaustive", "exhaustive+repair", "federated")
SHOWN_WORST = 5


def write_page(records: Records, real: RealRecords, path: Path) -> None:
    """Write the page and its pictures next to it."""
    best, filled = optima(records, BATCHES), fillings(records)
    pictures = path.parent / "images"
    pictures.mkdir(parents=True, exist_ok=True)
    draw_gaps(records, best, pictures / "fast-path-gaps.svg")
    draw_filling(filled, pictures / "fast-path-filling.svg")
    parts = [_head(records, best), _table(rows(records, best)), _targets(rows(records, best)), _kinds(records, best)]
    parts += [_held_out(records), _worst(records, best), real_part(real), _filling(filled)]
    path.write_text("\n\n".join(filter(None, parts)) + "\n")


def _head(records: Records, best: Sequence[Run]) -> str:
    ratio = [run.ratio for run in best]
    long = sum(run.cpu_s >= LONG_PROOF_S for run in best)
    names = {batches.name for batches in BATCHES}
    exact = [run for run in records.runs.values() if run.solver == EXACT and run.batch in names]
    unproven = sum(not run.proven for run in exact)
    outside = len(exact) - unproven - len(best)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "numba", "highspy"))
    return f"""# The fast path against proven optima

What `exhaustive` and `exhaustive+repair` give away against plans that HiGHS proves optimal, how far textbook
policies are from that, and what early binding costs as a fleet fills up. One command writes this page; it may be
stopped and goes on where it was:

    python -m benchmarks.fast_path

**Batches.** {len(best)} of the generator's family `study` with a proven optimum (relative gap of the objective at
most 1e-4, formulation `strong`, one thread), in which the waiting jobs ask for {min(ratio):.2f} to {max(ratio):.2f}
times the GPUs that the optimum admits, so that not everything fits. Seeds are taken in order; {outside} proven ones
were outside {LEAST_RATIO} to {MOST_RATIO}, {unproven} had no proof within the limit. {long} proofs took
{LONG_PROOF_S:g} s or more.

**Gap.** (V\\* − V) / V\\* of the tier-weighted value that is admitted, V\\* that of the optimal plan. It may be
negative: a plan may admit more than the optimal one by stopping more. So GPU-hours lost stand next to it, as a
multiple of what the optimum loses.

**Time.** CPU time of the whole call, with formulation and verification; the ratio is the geometric mean of HiGHS's
time over the solver's, on the {long} batches with long proofs. `exhaustive+repair` was given {REPAIR_ROUNDS:,} rounds
divided by the jobs of the batch, and stops when its bound proves a gap of 1e-4.

**Machine.** {platform.system()} {platform.machine()}, {os.cpu_count()} virtual CPUs, of which the study had
one to itself and other work the rest, but for some batches of up to 120 servers, which shared theirs. On each batch
the solvers took turns, HiGHS first. Python {platform.python_version()}, {versions}."""


def _table(found: Sequence[Row]) -> str:
    lines = [
        "## Gaps and times",
        "",
        "| solver | batches | mean gap | P95 | worst | same tier-0 jobs | GPU-hours lost | µs a job | proof / time |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found:
        name = "HiGHS" if row.solver == EXACT else f"`{row.solver}`"
        lines.append(
            f"| {name} | {row.batches} | {row.mean:.2%} | {row.p95:.2%} | {row.worst:.2%} | {row.same_top:.1%} | "
            f"{row.hours:.2f} | {row.us_per_job:,.0f} | {row.ratio:,.0f} |"
        )
    return "\n".join([*lines, "", "![Share of batches by gap](images/fast-path-gaps.svg)"])


def _targets(found: Sequence[Row]) -> str:
    lines = ["| target | figure | |", "|---|--:|---|"]
    for row in found:
        if row.solver in TARGETS:
            for what, value, most in zip(("mean", "worst"), (row.mean, row.worst), TARGETS[row.solver]):
                verdict = "met" if value <= most else "**missed**"
                lines.append(f"| `{row.solver}`, {what} gap at most {most:.1%} | {value:.2%} | {verdict} |")
            verdict = "met" if row.ratio >= 100 else "**missed**"
            lines.append(f"| `{row.solver}`, at most 1/100 of the proof's time | 1/{row.ratio:.0f} | {verdict} |")
    return "\n".join(lines)


def _kinds(records: Records, best: Sequence[Run]) -> str:
    lines = [
        "## By size and fill",
        "",
        "Mean and worst gap.",
        "",
        "| batches | number | proof, median s | `exhaustive` | `exhaustive+repair` | `federated` |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for batches in BATCHES:
        here = [run for run in best if run.batch == batches.name]
        proof = np.median([run.cpu_s for run in here])
        shown = [f"{row.mean:.2%}, {row.worst:.2%}" for row in _shown(records, here)]
        lines.append(f"| {batches.name} | {len(here)} | {proof:.2f} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _shown(records: Records, best: Sequence[Run]) -> list[Row]:
    """A row for each solver that the tables by batch show."""
    return [row_of(solver, pairs(records, solver, best)) for solver in SHOWN]


def _held_out(records: Records) -> str:
    lines = [
        "## Seeds that nothing was tuned on",
        "",
        "Mean, P95 and worst gap on a range of seeds that was looked at only when the code was final.",
        "",
        "| batches | number | `exhaustive` | `exhaustive+repair` | `federated` |",
        "|---|--:|--:|--:|--:|",
    ]
    every = optima(records, HELD_OUT)
    parts = [(batches.name, [run for run in every if run.batch == batches.name]) for batches in HELD_OUT]
    for name, here in (*parts, ("all of these", every)):
        shown = [f"{row.mean:.2%}, {row.p95:.2%}, {row.worst:.2%}" for row in _shown(records, here)]
        lines.append(f"| {name} | {len(here)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _worst(records: Records, best: Sequence[Run]) -> str:
    found = sorted(pairs(records, "exhaustive", best), key=lambda pair: -pair.gap)[:SHOWN_WORST]
    lines = [
        "The largest gaps of `exhaustive`, to look at:",
        "",
        *(f"- {pair.gap:.2%}: {pair.run.batch}, seed {pair.run.seed}" for pair in found),
        "",
        "What remains is of two kinds. Urgent jobs take free GPUs, which is the bid order (nobody is stopped while",
        "something is free), where the optimum stops somebody and leaves the free GPUs to the least important jobs;",
        "with few jobs of higher tiers in a batch that shows. And gangs for which several others would have to move.",
    ]
    return "\n".join(lines)


def _filling(found: Sequence[Filling]) -> str:
    lines = [
        "## Early binding as the fleet fills",
        "",
        "`federated` binds a job to the cluster with the most free GPUs of an acceptable type whose region holds its",
        "data, and then looks there alone; `exhaustive` looks everywhere. Family `standard`, 16 clusters, 60 jobs,",
        f"{FILL_SEEDS} seeds for each fill; the queue is drawn alike whatever the fill.",
        "",
        "| GPUs held before | `exhaustive` admits | `federated` | lost by early binding | GPU-hours of victims |",
        "|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {one.fill}% | {one.late.mean():.1%} | {one.early.mean():.1%} | {one.difference.mean():.1%} | "
        f"{one.late_hours:,.0f}, {one.early_hours:,.0f} |"
        for one in found
    ]
    lines += [
        "",
        "At 100% nothing is free: early binding then goes where most can be stopped, and pays in GPU-hours of victims.",
    ]
    return "\n".join([*lines, "", "![What early binding loses](images/fast-path-filling.svg)"])
