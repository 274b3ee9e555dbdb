"""A task of SkyPilot, ranked over the regions that an operator's tables allow.

Each region and GPU type is a pool of a live fleet, as large as its quota less what runs; GPUs that a plan has reserved
there are a pool of their own, at no price. A task is a gang of as many tasks as it has nodes. Its cost in a pool is
what its GPUs cost for its hours and what its data costs to get there, so that the fleet's bids are the ranking.
"""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from mast_opt.core.errors import InputError
from mast_opt.core.limits import read_regular
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Server
from mast_opt.problems.job_placement.units import LARGEST, MOST_POOLED, MOST_TASKS, WHOLE

MOST_BYTES = 2**26
KINDS = ("quota", "reserved", "running")
HOURS, DATASETS = "mast-opt-hours", "mast-opt-datasets"
"""Labels of a task: how long it runs, and what it reads in addition to its file mounts, with two underscores between
names (Google Cloud takes no commas in labels)."""
PLACED = ("any_of", "ordered", "infra", "accelerators", "cloud", "region", "zone")


@dataclass(frozen=True)
class Tables:
    """Statements of an operator about data, GPUs and transfers; a place is ``cloud/region``."""

    data: Mapping[str, tuple[frozenset[str], float]]
    """Dataset or bucket → places that hold it, and its GB."""
    gpus: Mapping[tuple[str, str, str], int]
    """One of ``KINDS``, place and GPU type → GPUs."""
    transfers: Mapping[tuple[str, str], float]
    """Place or cloud → place or cloud → USD for a GB; SkyPilot's own price where nothing is stated."""


@dataclass(frozen=True)
class Prices:
    """Prices of a catalogue."""

    node: Callable[[str, str, int, bool], float | None]
    """Place, GPU type, GPUs of a node and whether it is a spot node → USD for an hour; None where there is none."""
    egress: Callable[[str], float]
    """Cloud → USD for a GB that leaves it."""


@dataclass(frozen=True)
class Choice:
    """A place for a task."""

    infra: str
    gpu_type: str
    gpus: int
    reserved: bool
    gpu_usd: float
    transfer_usd: float
    asks: Mapping[str, Any]
    """Everything else that its resources ask for."""


@dataclass(frozen=True)
class Advice:
    """Places for a task, the best first, and why others are none."""

    choices: tuple[Choice, ...]
    reasons: tuple[str, ...]


def read_tables(folder: Path) -> Tables:
    """Tables of a folder: ``gpus.csv`` (kind, infra, accelerator, gpus) and, where they exist, ``data.csv`` (dataset,
    infra, gb) and ``transfers.csv`` (from, to, usd_per_gb). Raises InputError."""
    gpus: dict[tuple[str, str, str], int] = defaultdict(int)
    for kind, infra, accelerator, count in _rows(folder / "gpus.csv", "kind,infra,accelerator,gpus"):
        if kind not in KINDS or not count.isdecimal() or int(count) > MOST_POOLED:
            raise InputError(f"{folder / 'gpus.csv'}: found {kind},{count}; expected one of {KINDS} and whole GPUs")
        gpus[kind, _place(folder / "gpus.csv", infra), accelerator] += int(count)
    data: dict[str, tuple[frozenset[str], float]] = {}
    for name, infra, gigabytes in _rows(folder / "data.csv", "dataset,infra,gb", needed=False):
        held = data[name][0] if name in data else frozenset()
        data[name] = held | {_place(folder / "data.csv", infra)}, _amount(folder / "data.csv", gigabytes)
    transfers = {
        (source, to): _amount(folder / "transfers.csv", usd)
        for source, to, usd in _rows(folder / "transfers.csv", "from,to,usd_per_gb", needed=False)
    }
    return Tables(data, dict(gpus), transfers)


def _rows(path: Path, header: str, *, needed: bool = True) -> Iterable[list[str]]:
    """Rows of a CSV file below its header. Raises InputError."""
    if not needed and not path.exists():
        return []
    try:
        rows = list(csv.reader(read_regular(path, MOST_BYTES).decode().splitlines()))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if not rows or rows[0] != header.split(",") or any(len(row) != len(rows[0]) for row in rows):
        raise InputError(f"{path}: expected a first line {header}, and rows of {header.count(',') + 1} values")
    return rows[1:]


def _place(path: Path, text: str) -> str:
    """A place of a table, checked. Raises InputError."""
    if text.count("/") != 1 or not all(text.split("/")):
        raise InputError(f"{path}: infra is {text!r}; expected cloud/region, as in aws/us-east-1")
    return text


def _amount(where: object, text: str) -> float:
    """A finite number of at least 0. Raises InputError."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (isfinite(number) and number >= 0):
        raise InputError(f"{where}: found {text!r}; expected a finite number of at least 0")
    return number


def asked_of(task: Mapping[str, Any]) -> list[tuple[str, str, int, Mapping[str, Any]]]:
    """Infra, GPU type, GPUs of a node and all else, for each alternative of a task's resources that asks for GPUs.

    Args:
        task: the task as ``sky.Task.to_yaml_config`` writes it.
    """
    resources = task.get("resources") or {}
    base = {key: value for key, value in resources.items() if key not in ("any_of", "ordered")}
    found: list[tuple[str, str, int, Mapping[str, Any]]] = []
    for one in resources.get("any_of") or resources.get("ordered") or [{}]:
        asks = {**base, **one}
        wanted = asks.get("accelerators") or {}
        rest = {key: value for key, value in asks.items() if key not in PLACED}
        if not isinstance(wanted, Mapping):
            texts = [wanted] if isinstance(wanted, str) else wanted
            wanted = {name: count or 1 for name, _, count in (str(text).partition(":") for text in texts)}
        found += [(str(asks.get("infra") or "*"), str(name), int(count), rest) for name, count in wanted.items()]
    return found


def advise(task: Mapping[str, Any], tables: Tables, prices: Prices) -> Advice:
    """Places for a SkyPilot task that asks for GPUs. Raises InputError for labels and volumes that are no numbers."""
    nodes, reads, unknown = int(task.get("num_nodes") or 1), *_reads(task, tables)
    servers, costs, choices, reasons = [], dict[str, float](), dict[str, Choice](), list(unknown)
    needs = dict[str, int]()
    for infra, gpu_type, count, asks in asked_of(task):
        hours = _amount(f"label {HOURS}", str((asks.get("labels") or {}).get(HOURS, 1)))
        for place in sorted({place for kind, place, name in tables.gpus if name == gpu_type and _within(place, infra)}):
            usd = prices.node(place, gpu_type, count, bool(asks.get("use_spot")))
            if usd is None:
                reasons.append(f"{place}: the catalogue has no node with {count} {gpu_type} there")
                continue
            for reserved, free in enumerate(_free(tables, place, gpu_type)):
                name = f"{place} {gpu_type}:{count}{' reserved' * reserved}"
                if free < nodes * count:
                    if not reserved:
                        reasons.append(f"{place}: {nodes * count} {gpu_type} asked for, {free} left of the quota")
                    continue
                moved = sum(_transfer(held, place, tables, prices) * gb for held, gb in reads)
                where = infra if infra.count("/") == 2 and "*" not in infra else place
                one = Choice(
                    where, gpu_type, count, bool(reserved), 0.0 if reserved else usd * nodes * hours, moved, asks
                )
                if name not in choices:
                    servers.append(
                        Server(name, name, name, name, name, free, LARGEST // MOST_TASKS, LARGEST // MOST_TASKS)
                    )
                    costs[name], choices[name], needs[name] = one.gpu_usd + moved, one, count * WHOLE
    if not servers:
        none = "gpus.csv has no place with the GPUs and infra of the task" if asked_of(task) else "it asks for no GPUs"
        return Advice((), tuple(reasons) or (none,))
    job = Job("task", tier=0, tasks=nodes, gpu_types=needs, costs=costs)
    return Advice(tuple(choices[bid.region] for bid in Fleet(servers).bids(job)), tuple(reasons))


def _free(tables: Tables, place: str, gpu_type: str) -> tuple[int, int]:
    """GPUs left of a quota, and of what a plan has reserved; what runs is taken from the reserved ones first."""
    quota, reserved, running = (tables.gpus.get((kind, place, gpu_type), 0) for kind in KINDS)
    return max(0, quota - max(0, running - reserved)), max(0, reserved - running)


def _within(place: str, infra: str) -> bool:
    """Whether a place is one that a task's infra (``cloud/region/zone``, with stars) allows."""
    return all(asked in ("*", here) for asked, here in zip(infra.lower().split("/"), place.lower().split("/")))


def _reads(task: Mapping[str, Any], tables: Tables) -> tuple[list[tuple[frozenset[str], float]], list[str]]:
    """Places and GB of what a task reads, and a sentence for each bucket that no table knows.

    A volume that the task states under ``inputs`` counts instead of the table's.
    """
    mounts = (
        one.get("source") if isinstance(one, Mapping) else one for one in (task.get("file_mounts") or {}).values()
    )
    sizes = {_bucket(str(url)): gb for url, gb in (task.get("inputs") or {}).items()}
    labels = {
        name
        for *_, asks in asked_of(task)
        for name in str((asks.get("labels") or {}).get(DATASETS, "")).split("__")
        if name
    }
    names = sorted({_bucket(str(url)) for url in mounts if "://" in str(url)} | set(sizes) | labels)
    known = [
        (tables.data[name][0], _amount(name, str(sizes.get(name, tables.data[name][1]))))
        for name in names
        if name in tables.data
    ]
    return known, [
        f"{name}: data.csv does not say where it is; not counted" for name in names if name not in tables.data
    ]


def _bucket(url: str) -> str:
    """Scheme and bucket of a URL."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('/')[0]}" if rest else url


def _transfer(held: Iterable[str], to: str, tables: Tables, prices: Prices) -> float:
    """The least USD for a GB from one of the places that hold it."""
    found = []
    for source in held:
        pairs = ((source, to), (source, _cloud(to)), (_cloud(source), to), (_cloud(source), _cloud(to)))
        stated = next((tables.transfers[pair] for pair in pairs if pair in tables.transfers), None)
        own = 0.0 if _cloud(source) == _cloud(to) else prices.egress(_cloud(source))
        found.append(0.0 if source == to else own if stated is None else stated)
    return min(found)


def _cloud(place: str) -> str:
    """Cloud of a place."""
    return place.split("/")[0]


def placed(task: Mapping[str, Any], advice: Advice) -> dict[str, Any]:
    """The task with its places in ranked order; as it was where it asks for no GPUs. Placed again, it is the same."""
    if not asked_of(task):
        return dict(task)
    best = {(one.infra, one.gpu_type, one.gpus): one for one in reversed(advice.choices)}
    ordered = [
        {**one.asks, "infra": one.infra, "accelerators": {one.gpu_type: one.gpus}}
        for one in advice.choices
        if best[one.infra, one.gpu_type, one.gpus] is one
    ]
    return {**task, "resources": {"ordered": ordered}}
