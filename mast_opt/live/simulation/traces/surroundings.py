"""Surroundings of the jobs of a trace: datasets, storage and network of regions, switchboards, and what happens."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mast_opt.live.simulation.traces.schema import HAPPENINGS, QUOTA
from mast_opt.live.simulation.traces.tables import texts_of
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.schema import Tables


@dataclass(frozen=True)
class Dataset:
    """A unit of data that is copied as a whole."""

    size_mb: int
    namespace: str = ""
    """Namespace of the data; empty where the trace does not say."""
    created_ms: int = 0


@dataclass(frozen=True)
class Happening:
    """Something that happens at a time of the trace."""

    at_ms: int
    what: str
    """``server_down``, ``server_up``, …, ``quota``."""
    name: str
    """The server, switchboard, region or tenant."""
    mgpu: int | None = None
    """Milli-GPUs of a quota; None: there is no limit any more."""

    @property
    def of(self) -> str:
        """Kind of place that a happening of the trace affects: ``server``, ``switchboard``, ``region`` or ``quota``."""
        return self.what.partition("_")[0]

    @property
    def down(self) -> bool:
        """Whether a happening of the trace takes something out of service."""
        return self.what.endswith("_down")


@dataclass(frozen=True)
class Surroundings:
    """Everything of a trace but its servers, jobs and quotas."""

    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    residency: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Dataset → the only regions where it may be copied and read; a dataset that is not listed may be anywhere."""
    storage_mb: Mapping[str, int] = field(default_factory=dict)
    """Region → what it can store; a region that is not listed has no limit."""
    ingress_mb_per_day: Mapping[str, int] = field(default_factory=dict)
    """Region → the most that copies bring in a day; a region that is not listed has no limit."""
    links: Mapping[tuple[str, str], int] | None = None
    """(source, target) → MB a day; None: any region reaches any other, without a limit."""
    switchboards: Mapping[str, str] = field(default_factory=dict)
    """Server → switchboard that it hangs from."""
    happenings: tuple[Happening, ...] = ()
    """Happenings in ascending order of time."""


def surroundings_of(tables: Tables) -> Surroundings:
    """The surroundings of a trace's jobs that checked tables state."""
    regions = tables.axes["region"]

    def by_region(column: str) -> dict[str, int]:
        amounts, stated = tables.get("regions", column).tolist(), tables.has("regions", column).tolist()
        return {region: amount for region, amount, has in zip(regions, amounts, stated, strict=True) if has}

    links = None
    if "links" not in tables.missing:
        pairs = zip(texts_of(tables, "links", "src", "region"), texts_of(tables, "links", "dst", "region"), strict=True)
        links = dict(zip(pairs, tables.get("links", "tb_per_day").tolist(), strict=True))
    residency: dict[str, list[str]] = {}
    pairs = zip(*(texts_of(tables, "residency", name, name) for name in ("dataset", "region")), strict=True)
    for name, region in pairs:
        residency.setdefault(name, []).append(region)
    datasets = zip(
        texts_of(tables, "datasets", "dataset", "dataset"),
        tables.get("datasets", "size_tb").tolist(),
        texts_of(tables, "datasets", "namespace", "namespace"),
        tables.get("datasets", "created_s").tolist(),
        strict=True,
    )
    board = texts_of(tables, "switchboards", "switchboard", "switchboard")
    return Surroundings(
        datasets={name: Dataset(*rest) for name, *rest in datasets},
        residency={name: tuple(where) for name, where in residency.items()},
        storage_mb=by_region("storage_tb"),
        ingress_mb_per_day=by_region("ingress_tb_per_day"),
        links=links,
        switchboards=dict(zip(texts_of(tables, "switchboards", "server", "server"), board, strict=True)),
        happenings=_happenings(tables, texts_of(tables, "happenings", "name", "happening")),
    )


def _happenings(tables: Tables, names: list[str]) -> tuple[Happening, ...]:
    """Happenings of a trace, such as failures of servers, by time."""
    at = tables.get("happenings", "at_s")
    what, value = tables.get("happenings", "what"), tables.get("happenings", "value")
    stated = tables.has("happenings", "value")
    return tuple(
        Happening(
            int(at[row]),
            HAPPENINGS[what[row]],
            names[row],
            int(value[row]) if HAPPENINGS[what[row]] == QUOTA and stated[row] else None,
        )
        for row in np.argsort(at, kind="stable").tolist()
    )


def check_surroundings(tables: Tables, faults: Faults) -> None:
    """Note faults where the surroundings of a trace's jobs do not fit together."""
    _check_datasets(tables, faults)
    source, target = tables.get("links", "src"), tables.get("links", "dst")
    rows = np.flatnonzero(source == target)
    regions = tables.axes["region"]
    faults.cells("links", "dst", rows + 1, lambda n: regions[target[rows[n]]], "another region than the source")
    _check_happenings(tables, faults)


def _check_datasets(tables: Tables, faults: Faults) -> None:
    """Note faults of a trace's datasets: unlisted ones that are named, and some that no region holds."""
    if "datasets" in tables.missing:
        return
    listed = set(tables.get("datasets", "dataset").tolist())
    labels = tables.axes["dataset"]
    for table in ("replicas", "job_datasets", "residency"):
        read = tables.get(table, "dataset")
        unlisted = np.flatnonzero(~np.isin(read, list(listed)))
        named = [labels[at] for at in read[unlisted].tolist()]
        faults.cells(table, "dataset", unlisted + 1, named.__getitem__, "a dataset of the table datasets")
    held = set(tables.get("replicas", "dataset").tolist())
    rows = np.flatnonzero([one not in held for one in tables.get("datasets", "dataset").tolist()])
    found = tables.get("datasets", "dataset")
    faults.cells(
        "datasets", "dataset", rows + 1, lambda n: labels[found[rows[n]]], "a dataset with a region in replicas"
    )


def _check_happenings(tables: Tables, faults: Faults) -> None:
    """Note faults of what happens in a trace: places that it does not have, values where none belong."""
    names, what = tables.get("happenings", "name"), tables.get("happenings", "what")
    labels = tables.axes["happening"]
    has_value = tables.has("happenings", "value")
    for at, word in enumerate(HAPPENINGS):
        here = what == at
        if word == QUOTA:
            continue
        axis = word.partition("_")[0]
        known = set(tables.axes[axis])
        wrong = here & np.array([label not in known for label in labels], np.bool_)[names] if len(names) else here
        rows = np.flatnonzero(wrong)
        named = [labels[at] for at in names[rows].tolist()]
        faults.cells("happenings", "name", rows + 1, named.__getitem__, f"a {axis} of the trace")
        rows = np.flatnonzero(here & has_value)
        faults.cells("happenings", "value", rows + 1, lambda n: "a value", f"no value: {word} has none")
