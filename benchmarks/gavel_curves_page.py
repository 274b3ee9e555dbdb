"""Table and picture of Gavel's curves, from the results of ``benchmarks.gavel_curves``.

    python -m benchmarks.gavel_curves_page benchmarks/data/gavel-curves.jsonl docs/benchmarks

Writes the tables between the marks of ``gavel.md`` and the picture into ``images``. The knee of a curve is the largest
rate at which the mean is below ``KNEE`` times that at the least rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.gavel_curves import POLICIES, PUBLISHED, Run, read
from benchmarks.study_pages import results_and_docs, save, with_tables

PAGE, PICTURE = "gavel.md", "gavel-curves.svg"
SEED = 0
"""Of the figures that were published."""
FIRST, LAST = 4000, 5000
KNEE = 1.5
MOST_H = 110
DASH = "–"
Curves = Mapping[str, Mapping[float, float]]
OWN_CODE: Curves = {
    "fifo": {3.6: 22.999, 4.0: 26.272},
    "fifo with speeds": {2.4: 15.778, 4.0: 17.331},
    "max-min": {4.0: 23.745},
    "max-min with speeds": {4.0: 17.072, 5.2: 22.377},
}
"""Policy → jobs an hour → hours that Gavel's code gave here with seed 0 (commit c4fa400, CVXPY 1.5.4, ECOS 2.0.14)."""


def curves(runs: Sequence[Run], seed: int) -> Curves:
    """Policy → jobs an hour → hours, of the jobs that Gavel measured."""
    found: dict[str, dict[float, float]] = {policy: {} for policy in POLICIES}
    for run in sorted(runs, key=lambda run: run.rate_per_h):
        if run.seed == seed and (run.first, run.last) == (FIRST, LAST):
            found[run.policy][run.rate_per_h] = run.mean_h
    return found


def knee(curve: Mapping[float, float]) -> float:
    """See above; 0 without a curve."""
    rates = sorted(curve)
    return max((rate for rate in rates if curve[rate] < KNEE * curve[rates[0]]), default=0.0)


def table(runs: Sequence[Run]) -> str:
    """Ours of seed 0, published, and how far ours are from it."""
    ours = curves(runs, SEED)
    lines = [f"| jobs an hour | {' | '.join(POLICIES)} |", f"|--:|{'--:|' * len(POLICIES)}"]
    for rate in sorted({rate for curve in PUBLISHED.values() for rate in curve}):
        cells = (_cell(ours[policy].get(rate), PUBLISHED[policy].get(rate)) for policy in POLICIES)
        lines.append(f"| {rate:.1f} | {' | '.join(cells)} |")
    knees = (f"{_rate(knee(ours[policy]))} / {_rate(knee(PUBLISHED[policy]))}" for policy in POLICIES)
    return "\n".join([*lines, f"| knee | {' | '.join(knees)} |"])


def _rate(rate: float) -> str:
    return f"{rate:.1f}" if rate else DASH


def _cell(ours: float | None, published: float | None) -> str:
    if ours is None or published is None:
        return DASH if published is None else f"{DASH} / {published:.2f}"
    return f"{ours:.2f} / {published:.2f} ({_percent(ours, published)})"


def _percent(ours: float, published: float) -> str:
    return f"{100 * (ours / published - 1):+.1f}%".replace("-", "\N{MINUS SIGN}")


def own_code_table(runs: Sequence[Run]) -> str:
    """Ours, what Gavel's code gave here, and published."""
    ours = curves(runs, SEED)
    lines = ["| policy | jobs an hour | ours | Gavel's code, run here | published |", "|---|--:|--:|--:|--:|"]
    for policy, curve in OWN_CODE.items():
        for rate, hours in sorted(curve.items()):
            own = f"{hours:.2f}"
            mine = f"{ours[policy][rate]:.2f} ({_percent(ours[policy][rate], hours)})" if rate in ours[policy] else DASH
            published = f"{PUBLISHED[policy][rate]:.2f} ({_percent(PUBLISHED[policy][rate], hours)})"
            lines.append(f"| {policy} | {rate:.1f} | {mine} | {own} | {published} |")
    return "\n".join(lines)


def seeds_table(runs: Sequence[Run], rates: Sequence[float] = (0.4, 2.4, 4.0, 4.4, 4.8, 5.2)) -> str:
    """Hours of each seed."""
    seeds = sorted({run.seed for run in runs})
    of_seed = {seed: curves(runs, seed) for seed in seeds}
    lines = [f"| policy | {' | '.join(f'{rate:.1f}' for rate in rates)} |", f"|---|{'--:|' * len(rates)}"]
    for policy in POLICIES:
        found = [[of_seed[seed][policy].get(rate) for seed in seeds] for rate in rates]
        if all(None in of_rate for of_rate in found):
            continue
        cells = (" / ".join(DASH if hours is None else f"{hours:.1f}" for hours in of_rate) for of_rate in found)
        lines.append(f"| {policy} | {' | '.join(cells)} |")
    return "\n".join(lines)


def written(page: str, runs: Sequence[Run]) -> str:
    """The page with its tables, each between ``<!-- table: NAME -->`` and ``<!-- end -->``."""
    makers = {"curves": table, "own-code": own_code_table, "seeds": seeds_table}
    return with_tables(page, {name: partial(make, runs) for name, make in makers.items()})


def draw(runs: Sequence[Run], picture: Path) -> None:
    """Ours as lines, thin ones for other seeds; published figures as circles."""
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 4.2))
    for seed in sorted({run.seed for run in runs}, key=lambda seed: seed != SEED):
        for at, (policy, curve) in enumerate(curves(runs, seed).items()):
            own = seed == SEED
            width, label = (1.6, policy) if own else (0.5, None)
            axis.plot(list(curve), list(curve.values()), color=f"C{at}", linewidth=width, label=label)
    for at, policy in enumerate(POLICIES):
        rates, hours = list(PUBLISHED[policy]), list(PUBLISHED[policy].values())
        label = "published" if not at else None
        axis.plot(rates, hours, "o", markersize=5, markerfacecolor="none", color=f"C{at}", label=label)
    axis.set(xlabel="jobs an hour", ylabel="mean completion time, h", ylim=(0, MOST_H), xlim=(0, 6.2))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    save(figure, picture)


def main() -> None:
    results, docs = results_and_docs(__doc__)
    runs, page = read(results), docs / PAGE
    page.write_text(written(page.read_text(), runs))
    draw(runs, docs / "images" / PICTURE)


if __name__ == "__main__":
    main()
