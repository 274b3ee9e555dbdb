"""Specs of Armada's simulator as a trace of jobs: its queues are tenants, each pool of nodes is a region."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.core.errors import InputError, SourceError, UsageError
from mast_opt.core.limits import MOST_DOCUMENT_BYTES
from mast_opt.core.units import MILLI
from mast_opt.live.simulation.traces.schema import KIND, MOST_S
from mast_opt.live.simulation.traces.tables import Given, TraceTables, places, trace_tables
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.planner.importers.fields import Field, stated
from mast_opt.planner.importers.pod_requests import amount, is_gpu
from mast_opt.planner.importers.yaml_file import yaml_documents
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.readers.base import read_bytes
from mast_opt.problems.job_placement.units import MOST_GPUS, Ints

REFUSED_OF_CLUSTERS = (Field("clusters[].nodeTemplates[].taints", "a trace has no rules about single servers"),)
_TEMPLATE = "queues[].jobTemplates[]"
REFUSED_OF_WORKLOADS = (
    Field(f"{_TEMPLATE}.dependencies", "jobs of a trace depend on nothing"),
    Field(f"{_TEMPLATE}.repeat", "templates that come again"),
    Field(f"{_TEMPLATE}.gangCardinality", "gangs of several jobs"),
)
BECOME, TAILS = ("cores", "gpus"), ("drawn", "none")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|m|s|ms))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_UNIT_MS = {"h": 3_600_000, "m": 60_000, "s": MILLI, "ms": 1}
MOST_ROWS = 1_000_000
ALL_QUEUES = "all queues"
"""Group of tenants in which queues lend each other what they do not use."""
Spec = Mapping[str, Any]


@dataclass(frozen=True)
class ArmadaSettings:
    """The knobs of the importer."""

    become: str = setting("cores", "what CPUs become: cores, or gpus for policies and quotas that look at GPUs only")
    tail: str = setting("drawn", "what becomes of tailMean: drawn (by --seed), or none, for exact answers")
    preemptible: str = setting("armada-preemptible", "priority classes whose jobs may be stopped, by commas")
    name: str = setting("", "of the trace; empty = that of the workload spec")

    def __post_init__(self) -> None:
        for name, known in (("become", BECOME), ("tail", TAILS)):
            if getattr(self, name) not in known:
                raise UsageError(f"setting {name} is {getattr(self, name)!r}; expected {' or '.join(known)}")


@dataclass(frozen=True)
class _Needs:
    """Resources of a node or job, in base units."""

    mgpu: int
    cpu_mcores: int
    memory_mib: int


@dataclass(frozen=True)
class _Jobs:
    """Equal jobs of a queue."""

    queue: str
    label: str
    number: int
    needs: _Needs
    preemptible: bool
    submitted_ms: int
    least_ms: int
    tail_ms: int


def armada(paths: Sequence[Path], settings: ArmadaSettings, rng: np.random.Generator) -> TraceTables:
    """The trace from a cluster spec and a workload spec. Of chance are the tails of run times alone. Raises
    SourceError."""
    faults = Faults()
    specs = [
        _spec(path, of, faults) for path, of in zip(paths, (REFUSED_OF_CLUSTERS, REFUSED_OF_WORKLOADS), strict=True)
    ]
    if faults:
        raise SourceError(faults.found)
    try:
        nodes = list(_nodes(specs[0], settings))
        weights, jobs = _queues(specs[1], settings)
        if max(sum(number for *_, number in nodes), sum(one.number for one in jobs)) > MOST_ROWS:
            raise InputError(f"the specs have too much; expected at most {MOST_ROWS:,} nodes and as many jobs")
        tables = {**_places(nodes), "submissions": _submissions(jobs, settings, rng)}
    except InputError as error:
        faults.add(" and ".join(path.name for path in paths), str(error))
        raise SourceError(faults.found) from None
    gpus = sum(needs.mgpu * number for _, _, needs, number in nodes)
    if gpus:
        of = [0, *(int(gpus * weight / sum(weights.values())) for weight in weights.values())]
        parents = ["", *[ALL_QUEUES] * len(weights)]
        tables["quotas"] = {"tenant": [ALL_QUEUES, *weights], "gpus": np.array(of, np.int64), "parent": parents}
    name = settings.name or str(specs[1].get("name", "armada"))
    says = f"Armada's simulator: {specs[0].get('name', 'nodes')}; {specs[1].get('name', 'jobs')}"
    drawn = " and an exponential draw" if settings.tail == TAILS[0] else ""
    return trace_tables(name, f"{says}. Jobs run for their minimum{drawn}; CPUs are {settings.become}", tables)


def _spec(path: Path, refused: Sequence[Field], faults: Faults) -> Spec:
    """The object of a spec file, in JSON or YAML; faults say what it must not state."""
    data = read_bytes(path, path.name, faults, most=MOST_DOCUMENT_BYTES)
    if data is None:
        return {}
    try:
        found = json.loads(data) if data.lstrip()[:1] == b"{" else next(iter(yaml_documents(path)), None)
    except (InputError, ValueError, RecursionError) as error:
        faults.add(path.name, f"a spec in YAML or JSON: {' '.join(str(error).split())[:200]}")
        return {}
    if not isinstance(found, dict):
        faults.add(path.name, "an object", value=found)
        return {}
    for field in stated(found, refused):
        faults.add(path.name, f"no {field.name}: {field.help}")
    return found


def _nodes(spec: Spec, settings: ArmadaSettings) -> Iterator[tuple[str, str, _Needs, int]]:
    """(pool, cluster, what a node has, how many) of each template of nodes."""
    for cluster in _listed(spec, "clusters"):
        name = _text(cluster, "name")
        for template in _listed(cluster, "nodeTemplates"):
            has = _needs(_object(_object(template, "totalResources"), "resources"), settings)
            yield str(cluster.get("pool") or name), name, has, _count(template)


def _queues(spec: Spec, settings: ArmadaSettings) -> tuple[dict[str, Fraction], list[_Jobs]]:
    """Queue → weight, and the templates of jobs."""
    weights: dict[str, Fraction] = {}
    jobs: list[_Jobs] = []
    stoppable = settings.preemptible.split(",")
    for queue in _listed(spec, "queues"):
        name, weight = _text(queue, "name"), queue.get("weight", 1)
        if (
            name in (*weights, ALL_QUEUES)
            or isinstance(weight, bool)
            or not isinstance(weight, (int, float))
            or not 0 < weight < 1e9
        ):
            raise InputError(f"queue {name} has weight {weight!r}; expected each name once, and more than 0")
        weights[name] = Fraction(weight)
        for at, one in enumerate(_listed(queue, "jobTemplates")):
            runs = _object(one, "runtimeDistribution")
            asks = _object(_object(_object(one, "requirements"), "resourceRequirements"), "requests")
            needs, may_stop = _needs(asks, settings), one.get("priorityClassName") in stoppable
            times = (_ms(one, "earliestSubmitTime"), _ms(runs, "minimum"), _ms(runs, "tailMean"))
            jobs.append(_Jobs(name, f"{name}-{at}", _count(one), needs, may_stop, *times))
    if not jobs:
        raise InputError("there are no jobs; expected a queue with jobTemplates")
    return weights, jobs


def _needs(found: Spec, settings: ArmadaSettings) -> _Needs:
    """Resources of a node, or requests of a job."""
    cpu = int(amount(found.get("cpu", 0), "cpu") * MILLI)
    gpus = sum(int(amount(value, name) * MILLI) for name, value in found.items() if is_gpu(str(name)))
    memory_mib = int(amount(found.get("memory", 0), "memory") / 2**20)
    if settings.become == BECOME[0]:
        return _Needs(gpus, cpu, memory_mib)
    if gpus or cpu % MILLI or cpu > MOST_GPUS * MILLI:
        raise InputError(
            f"resources are {dict(found)}; expected whole CPUs, at most {MOST_GPUS}, and no GPUs, as CPUs become GPUs"
        )
    return _Needs(cpu, 0, memory_mib)


def _places(nodes: Sequence[tuple[str, str, _Needs, int]]) -> dict[str, Mapping[str, Given]]:
    """Tables of regions, clusters and servers."""
    rows = [(pool, cluster, has) for pool, cluster, has, number in nodes for _ in range(number)]
    if not rows:
        raise InputError("there are no nodes; expected clusters with nodeTemplates")
    kinds = {has: f"node-{at}" for at, has in enumerate(dict.fromkeys(has for *_, has in rows))}
    region_of = {cluster: pool for pool, cluster, _ in rows}
    if len(set(region_of)) < len({(pool, cluster) for pool, cluster, _ in rows}):
        raise InputError("a cluster is in two pools; expected each name once")
    found = places(
        list(dict.fromkeys(region_of.values())),
        [f"{cluster}-{at}" for at, (_, cluster, _) in enumerate(rows)],
        [cluster for _, cluster, _ in rows],
        np.array([has.mgpu // MILLI for *_, has in rows], np.int64),
        gpu_type=[kinds[has] for *_, has in rows],
        cpu_mcores=np.array([has.cpu_mcores for *_, has in rows], np.int64),
        memory_mib=np.array([has.memory_mib for *_, has in rows], np.int64),
    )
    return {**found, "clusters": {"cluster": list(region_of), "region": list(region_of.values())}}


def _submissions(jobs: Sequence[_Jobs], settings: ArmadaSettings, rng: np.random.Generator) -> Mapping[str, Given]:
    """Table of submissions; a job that is stopped begins again, as in Armada."""
    number = np.array([one.number for one in jobs], np.int64)

    def each(values: Sequence[int]) -> Ints:
        return np.repeat(np.array(values, np.int64), number)

    lasts = each([one.least_ms for one in jobs])
    if settings.tail == TAILS[0]:
        lasts = lasts + np.round(rng.exponential(each([one.tail_ms for one in jobs]))).astype(np.int64)
    lasts = np.minimum(np.maximum(lasts, 1), MOST_S * MILLI)
    rows = len(lasts)
    return {
        "job": [f"{one.label}-{at}" for one in jobs for at in range(one.number)],
        "submitted_s": each([one.submitted_ms for one in jobs]),
        "tier": np.zeros(rows, np.int64),
        "tasks": np.ones(rows, np.int64),
        "gpus": each([one.needs.mgpu for one in jobs]),
        "cpu_cores": each([one.needs.cpu_mcores for one in jobs]),
        "memory_gb": each([one.needs.memory_mib for one in jobs]),
        "duration_s": lasts,
        "tenant": [one.queue for one in jobs for _ in range(one.number)],
        "preemptible": each([one.preemptible for one in jobs]),
        "checkpoint_s": np.full(rows, lasts.max(), np.int64),
        "restart_s": np.zeros(rows, np.int64),
    }


def _ms(found: Spec, key: str) -> int:
    """Milliseconds of a duration such as ``1h30m``; 0 where there is none. Raises InputError."""
    text = found.get(key)
    if text is None:
        return 0
    if isinstance(text, str) and len(text) < 30 and _DURATION.fullmatch(text):
        total = sum(Fraction(part) * _UNIT_MS[unit] for part, unit in _PART.findall(text))
        if total <= MOST_S * MILLI:
            return int(total)
    raise InputError(f"{key} is {str(text)[:60]!r}; expected a duration of at most {MOST_S:,} s, such as 1h30m or 36s")


def _count(found: Spec) -> int:
    """Number of equal nodes or jobs. Raises InputError."""
    number = found.get("number", 1)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= MOST_ROWS:
        raise InputError(f"number is {str(number)[:60]!r}; expected 0 to {MOST_ROWS:,}")
    return number


def _text(found: Spec, key: str) -> str:
    """A name. Raises InputError."""
    value = found.get(key)
    if not isinstance(value, str) or not value:
        raise InputError(f"{key} is {str(value)[:60]!r}; expected a name")
    return value


def _object(found: Spec, key: str) -> Spec:
    """The object under a key, empty where there is none. Raises InputError."""
    value = found.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{key} is {str(value)[:60]!r}; expected an object")
    return value


def _listed(found: Spec, key: str) -> Sequence[Spec]:
    """The list of objects under a key, empty where there is none. Raises InputError."""
    value = found.get(key) or []
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise InputError(f"{key} is {str(value)[:60]!r}; expected a list of objects")
    return value


ARMADA = Importer(
    kind=KIND,
    help="a trace of jobs from the specs of Armada's simulator; the weights of queues become quotas of GPUs",
    inputs=(
        Input("cluster", "a cluster spec, in YAML or JSON"),
        Input("workload", "a workload spec, in YAML or JSON"),
    ),
    settings_type=ArmadaSettings,
    build=armada,
)
