"""Tables and pictures of the headline in time, from the results of ``benchmarks.headline_in_time``.

    python -m benchmarks.headline_in_time_page benchmarks/data/headline-in-time.jsonl docs/benchmarks

Writes the tables between the marks of ``headline-in-time.md`` and the pictures into ``images``. A cell is the median
over seeds, least to most in brackets. Differences are paired by seed with another variant (``base_of``): their mean,
with the 95% interval of a bootstrap where there are three seeds or more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import headline_at_size
from benchmarks.headline_in_time import read
from benchmarks.headline_runs import WORST_BEFORE
from benchmarks.headline_variants import AFTER, VARIANTS
from benchmarks.study_pages import results_and_docs, save, with_tables

Figures = Mapping[str, float | None]
Runs = Mapping[str, Mapping[int, Figures]]
"""Variant → seed → figures."""
DRAWS = 10_000
DASH = "–"
PAGE = "headline-in-time.md"
TIERS = range(5)
STORAGE = {"storage-110": 1.1, "storage-150": 1.5, "storage-200": 2.0, "after": 2.25, "storage-250": 2.5}
EARLY_OF = {"after": "early-share"}
"""Variant → the one with early binding, where that is not its name with ``-early``."""


@dataclass(frozen=True)
class Column:
    """A column of the tables."""

    head: str
    figure: str
    factor: float = 1.0
    spread: bool = False
    difference: bool = False
    """It is followed by the paired difference."""


COLUMNS = (
    Column("tier-0 ratio", "ratio", spread=True, difference=True),
    Column("tier 0 waits, h", "wait_0_h", difference=True),
    Column("tier 4 waits, h", "wait_4_h", difference=True),
    Column("allocated, %", "allocation", 100.0),
    Column("waited for data, %", "for_data_percent"),
    Column("more storage, %", "storage_percent"),
    Column("copied a day, %", "copied_percent_per_day"),
    Column("preemptions", "preemptions"),
    Column("starved (tier 0)", "starved"),
)
TABLES: Mapping[str, Sequence[str]] = {
    "headline": ("before", "after", "before-packed", "everywhere"),
    "time": ("after", "instant", "frozen-7", "frozen-30", "no-plan", "regional"),
}
OF_OWN_FILES = {name: f"headline-in-time-{name}.jsonl" for name in ("room", "room-large", "limits", "binding")}
"""Table → file of its runs, which are of newer code."""
AT_SIZE = "headline-at-size.jsonl"
"""File of the runs at the published size."""
OTHERS = (
    *("storage-110", "storage-150", "storage-200", "storage-250", "two-copies", "no-preemption"),
    *("first-time-0", "first-time-95", "foresight", "error-150"),
    *("free-copies", "hard", "soft", "no-servers", "servers", "lost-no-servers", "lost-with-servers"),
    *("pack-never", "pack-same", "best-fit", "everywhere-pack-never", "short-pack-never"),
)
"""Variants of the table that has only the first columns."""
_BASES = {"before-packed": "before", "servers": "no-servers", "lost-with-servers": "lost-no-servers"}
_BASES |= {"short-pack-never": "short", "everywhere-pack-never": "pack-never", "limits": "limits-pass"}


def runs_of(file: Path) -> Runs:
    """The runs of a file, in the order of ``VARIANTS``."""
    found: dict[str, dict[int, Figures]] = {}
    for run in read(file)[1]:
        found.setdefault(run["variant"], {})[run["seed"]] = run["figures"]
    return {name: dict(sorted(found[name].items())) for name in VARIANTS if name in found}


def base_of(name: str) -> str:
    """The variant with which another one is compared."""
    if name in _BASES:
        return _BASES[name]
    return name.removesuffix("-early") if name.endswith("-early") else AFTER.name


def spread(values: Sequence[float], *, ends: bool = True) -> str:
    """Median, and least to most."""
    if not values:
        return DASH
    text = _plain(float(np.median(values)))
    return text if len(values) < 2 or not ends else f"{text} ({_plain(min(values))} to {_plain(max(values))})"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def interval(differences: Sequence[float]) -> str:
    """Mean of paired differences, with its interval."""
    if not differences:
        return ""
    mean = _signed(float(np.mean(differences)))
    if len(differences) < 3:
        return f"{mean} ({len(differences)} pairs)"
    rng = np.random.default_rng(1)
    means = rng.choice(np.array(differences), (DRAWS, len(differences))).mean(axis=1)
    low, high = np.percentile(means, (2.5, 97.5))
    return f"{mean} ({_signed(low)} to {_signed(high)})"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "\N{MINUS SIGN}")


def values(runs: Runs, name: str, figure: str) -> dict[int, float]:
    """Seed → figure, where there is one."""
    found = {seed: figures.get(figure) for seed, figures in runs.get(name, {}).items()}
    return {seed: value for seed, value in found.items() if value is not None}


def table(runs: Runs, names: Sequence[str], columns: Sequence[Column] = COLUMNS) -> str:
    """The rows of these variants."""
    heads = [head for column in columns for head in ((column.head, "Δ") if column.difference else (column.head,))]
    lines = [f"| variant | seeds | {' | '.join(heads)} |", f"|---|--:|{'--:|' * len(heads)}"]
    for name in names:
        if name not in runs:
            continue
        cells = []
        for column in columns:
            found = values(runs, name, column.figure)
            cells.append(spread([value * column.factor for value in found.values()], ends=column.spread))
            if column.figure == "starved":
                cells[-1] += f" ({spread(list(values(runs, name, 'urgent_starved').values()), ends=False)})"
            if column.difference:
                base = {} if base_of(name) == name else values(runs, base_of(name), column.figure)
                cells.append(interval([found[seed] - base[seed] for seed in found if seed in base]))
        lines.append(f"| `{name}` | {len(runs[name])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def written(page: str, runs: Runs, data: Path) -> str:
    """The page with its tables, each between ``<!-- table: NAME -->`` and ``<!-- end -->``; ``data`` is the folder of
    ``OF_OWN_FILES``.
    """
    tables = {name: partial(table, runs, names) for name, names in TABLES.items()}
    for name, file in OF_OWN_FILES.items():
        tables[name] = partial(table, runs_of(data / file), tuple(VARIANTS))
    tables["at-size"] = partial(headline_at_size.table, read(data / AT_SIZE)[1])
    return with_tables(page, {**tables, "others": partial(table, runs, OTHERS, COLUMNS[:2])})


def draw_variants(runs: Runs, picture: Path) -> None:
    """Median, and least to most over the seeds: ratio, waits of the first and the last tier."""
    from matplotlib import pyplot as plt

    figures = {"ratio": "tier-0 ratio", "wait_0_h": "wait of tier 0, h", "wait_4_h": "wait of tier 4, h"}
    figure, axes = plt.subplots(1, 3, figsize=(11, 0.2 * len(runs) + 1), sharey=True)
    for axis, (key, label) in zip(axes, figures.items(), strict=True):
        found = [list(values(runs, name, key).values()) for name in runs]
        axis.hlines(range(len(runs)), list(map(min, found)), list(map(max, found)), color="C0", alpha=0.5, linewidth=3)
        axis.plot(list(map(np.median, found)), range(len(runs)), "|", markersize=9, color="C1", markeredgewidth=2)
        axis.set_xlabel(label)
        axis.grid(axis="x", alpha=0.3)
        axis.tick_params(axis="y", length=0)
    axes[0].set_xscale("log")
    axes[0].set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes[0].minorticks_off()
    axes[0].axvline(1.0, color="grey", linewidth=0.8)
    axes[0].axvline(WORST_BEFORE, color="grey", linewidth=0.8, linestyle=":")
    axes[0].set_yticks(range(len(runs)), list(runs), fontsize=8)
    axes[0].set_ylim(len(runs) - 0.5, -0.5)
    save(figure, picture)


def draw_questions(runs: Runs, picture: Path) -> None:
    """Ratio over storage under late and early binding; waits of all tiers."""
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
    for early, colour in ((False, "C0"), (True, "C1")):
        points = {
            copies: list(values(runs, EARLY_OF.get(name, f"{name}-early") if early else name, "ratio").values())
            for name, copies in STORAGE.items()
        }
        points = {copies: found for copies, found in points.items() if found}
        left.plot(
            [copies for copies, found in points.items() for _ in found],
            [value for found in points.values() for value in found],
            "o",
            alpha=0.4,
            color=colour,
            markersize=4,
        )
        medians = [np.median(found) for found in points.values()]
        left.plot(list(points), medians, color=colour, label="early (share)" if early else "late")
    left.axhline(1.0, color="grey", linewidth=0.8)
    left.set_yscale("log")
    left.set_yticks([1, 1.5, 2, 3, 4], ["1", "1.5", "2", "3", "4"])
    left.minorticks_off()
    left.set(xlabel="storage, copies of everything", ylabel="tier-0 ratio")
    left.legend(title="binding", frameon=False)
    for name in ("before", "after", "early-share", "no-preemption", "copy-on-submission"):
        means = [np.median(list(values(runs, name, f"wait_{tier}_h").values()) or [np.nan]) for tier in TIERS]
        right.plot(list(TIERS), means, "o-", label=name, markersize=4)
    right.set(xlabel="tier", ylabel="wait, h (median of the means)", xticks=list(TIERS))
    right.legend(frameon=False)
    for axis in (left, right):
        axis.grid(alpha=0.3)
    save(figure, picture)


def main() -> None:
    results, docs = results_and_docs(__doc__)
    runs, page = runs_of(results), docs / PAGE
    page.write_text(written(page.read_text(), runs, results.parent))
    runs = {**runs, **runs_of(results.parent / OF_OWN_FILES["binding"])}
    draw_variants(runs, docs / "images" / "headline-in-time.svg")
    draw_questions(runs, docs / "images" / "headline-in-time-questions.svg")


if __name__ == "__main__":
    main()
