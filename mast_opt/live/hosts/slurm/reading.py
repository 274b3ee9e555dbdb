"""A cluster of Slurm, from what its programs print."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import InputError
from mast_opt.core.limits import read_regular
from mast_opt.live.hosts.slurm.request import Ask, ask_in, limit_s, memory_mib, names_in, number
from mast_opt.planner.importers.slurm_nodes import UNTYPED, SlurmNode, gpus_of, node_in, nodes_of

MOST_BYTES = 2**28
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "sinfo.json": ("sinfo", "--all", "--Node", "--json"),
    "squeue.json": ("squeue", "--all", "--json"),
    "partitions.txt": ("scontrol", "--all", "--oneliner", "show", "partitions"),
    "config.txt": ("scontrol", "show", "config"),
    "topology.txt": ("scontrol", "--oneliner", "show", "topology"),
    "qos.txt": ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=Name,Priority,Preempt,MaxWall"),
}
"""File of a folder → the program that prints it. The last two are not needed where the cluster has none."""
_PAIR = re.compile(r"([A-Za-z]\w*)=(\S*)")
_SETTING = re.compile(r"^(\w+)\s*= (.*)$", re.MULTILINE)
_ENDED = re.compile(r"(RESERVED|MAINT|PLANNED_DOWN)")
BITS = NDArray[np.bool_]


@dataclass(frozen=True)
class Partition:
    """A partition."""

    name: str
    nodes: BITS
    tier: int
    default: bool
    up: bool
    preempt_mode: str
    """How its jobs are stopped for those of higher tiers; ``OFF`` if never."""
    most_s: int | None
    default_s: int | None
    memory_of_cpu_mib: int | None
    memory_of_node_mib: int | None
    most_nodes: int | None
    exclusive: bool
    over_s: int | None = 0
    """Time (``OverTimeLimit``) that a job may run beyond its limit; None: it is never ended for it."""


@dataclass(frozen=True)
class Qos:
    """A quality of service."""

    priority: int
    preempts: frozenset[str]
    most_s: int | None


@dataclass(frozen=True)
class Running:
    """A job that runs."""

    number: int
    partition: str
    qos: str
    nodes: NDArray[np.intp]
    amounts: NDArray[np.int64]
    """Amount of each resource that it holds, on each of its nodes."""
    started_s: int
    end_s: int
    """Latest end, with the time that Slurm gives it to end."""


@dataclass(frozen=True)
class Waiting:
    """A job that waits, and its priority."""

    number: int
    priority: int
    ask: Ask


@dataclass(frozen=True)
class Cluster:
    """A cluster at a moment. Resources are CPUs, MiB of memory and GPUs of each type."""

    now_s: int
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    """GPU types: the resources from the third on."""
    capacity: NDArray[np.int64]
    """[node, resource]."""
    usable: BITS
    features: tuple[frozenset[str], ...]
    weights: NDArray[np.int64]
    partitions: Mapping[str, Partition]
    running: tuple[Running, ...]
    waiting: tuple[Waiting, ...]
    """Those that wait for resources or priority."""
    idle_waiting: int
    """Number of jobs that wait for something else: held, or for others, or for a time."""
    settings: Mapping[str, str]
    groups: tuple[tuple[str, BITS], ...] = ()
    """Switches or blocks of the topology and their nodes, the smallest first."""
    qos: Mapping[str, Qos] = field(default_factory=dict)

    def parameter(self, name: str, otherwise: int) -> int:
        """A number of ``SchedulerParameters``."""
        match = re.search(rf"(?:^|,){name}=(\d+)", self.settings.get("SchedulerParameters", ""))
        return int(match[1]) if match else otherwise


def texts_of(folder: Path) -> tuple[dict[str, str], int]:
    """Texts of a folder with files as ``PROGRAMS`` names them, and when that of the jobs was written. Raises
    InputError."""
    found = {}
    for name in PROGRAMS:
        try:
            found[name] = read_regular(folder / name, MOST_BYTES).decode(errors="replace")
        except FileNotFoundError as error:
            if name not in ("topology.txt", "qos.txt"):
                raise InputError(f"{folder / name} is missing; {' '.join(PROGRAMS[name])} prints it") from error
        except OSError as error:
            raise InputError(f"{folder / name} cannot be read: {error}") from error
    return found, int((folder / "squeue.json").stat().st_mtime)


def texts_now(limit_s: float) -> tuple[dict[str, str], int]:
    """Texts that the programs print now, and the time.

    Args:
        limit_s: how long each of them may take.

    Raises:
        InputError: one is missing, fails or is late.
    """
    return {name: text for name, words in PROGRAMS.items() if (text := printed(words, limit_s))}, int(time.time())


def printed(words: tuple[str, ...], limit_s: float) -> str:
    """Output of a program; nothing where the cluster has no topology or no accounting. Raises InputError."""
    program = shutil.which(words[0])
    if program is None:
        raise InputError(f"{words[0]} is missing; expected Slurm's programs here (Debian: slurm-client), or --from")
    try:
        ended = subprocess.run([program, *words[1:]], capture_output=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{' '.join(words)} has not answered within {limit_s:g} s; nothing was changed") from error
    if ended.returncode and words[0] != "sacctmgr" and words[-1] != "topology":
        said = ended.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise InputError(f"{' '.join(words)} fails: {said[0]}")
    return ended.stdout.decode(errors="replace") if not ended.returncode else ""


def cluster_of(texts: Mapping[str, str], now_s: int) -> Cluster:
    """The cluster that texts describe. Raises InputError."""
    at = "sinfo.json"
    try:
        items = nodes_of(json.loads(texts[at]))
        found: dict[str, tuple[SlurmNode, Mapping[str, Any]]] = {
            node.name: (node, item) for item in items or () for node in node_in(item)
        }
        at = "config.txt"
        settings = {name: value.strip() for name, value in _SETTING.findall(texts[at])}
        nodes = [node for node, _ in found.values()]
        kinds = tuple(sorted({kind for node in nodes for kind in node.gpus}))
        places = {node.name: place for place, node in enumerate(nodes)}
        at = "partitions.txt"
        partitions = {one.name: one for line in texts[at].splitlines() if (one := _partition(line, places, settings))}
        at = "squeue.json"
        jobs = json.loads(texts[at])["jobs"]
        kill_s = kill_wait_s(settings)
        threads = {name: max(1, number(item.get("threads")) or 1) for name, (_, item) in found.items()}
        running = tuple(
            _running(job, places, kinds, threads, now_s + 1, kill_s) for job in jobs if _state(job, "RUNNING")
        )
        waiting = [job for job in jobs if _state(job, "PENDING")]
        ready = [one for job in waiting for one in _waiting(job)]
        at = "topology.txt"
        groups = _groups(texts.get(at, ""), places)
        at = "qos.txt"
        qos = dict(_qos(line) for line in texts.get(at, "").splitlines())
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{at} is not as {' '.join(PROGRAMS[at])} prints it: {error!r}") from error
    if not nodes or not partitions:
        raise InputError(f"{at}: expected at least one node and one partition")
    return Cluster(
        now_s,
        tuple(places),
        kinds,
        np.array([[n.cores, n.memory_mib, *(n.gpus.get(kind, 0) for kind in kinds)] for n in nodes], np.int64),
        np.array([node.available and not any(map(_ENDED.match, node.states)) for node in nodes]),
        tuple(_features(item) for _, item in found.values()),
        np.array([_weight(item) for _, item in found.values()], np.int64),
        partitions,
        running,
        tuple(ready),
        sum(not any(_waiting(job)) for job in waiting),
        settings,
        groups,
        qos,
    )


def _state(job: Mapping[str, Any], state: str) -> bool:
    """Whether a job is in a state."""
    stated = job["job_state"]
    return state in ([stated] if isinstance(stated, str) else stated)


def _features(item: Mapping[str, Any]) -> frozenset[str]:
    """Features of a node, of ``scontrol``'s form or ``sinfo``'s."""
    stated = item.get("features") or ""
    text = stated.get("total") or "" if isinstance(stated, dict) else stated
    return frozenset(text if isinstance(text, list) else text.split(","))


def _weight(item: Mapping[str, Any]) -> int:
    """Weight of a node; 1 where none is stated."""
    stated = item.get("weight", 1)
    return number(stated.get("maximum") if isinstance(stated, dict) and "maximum" in stated else stated) or 0


def _partition(line: str, places: Mapping[str, int], settings: Mapping[str, str]) -> Partition | None:
    """A partition of a line of ``scontrol --oneliner``; None for an empty line."""
    says = dict(_PAIR.findall(line))
    if not says:
        return None
    nodes = np.zeros(len(places), bool)
    nodes[[places[name] for name in names_in(says["Nodes"]) if name in places]] = True

    def stated(key: str) -> int | None:
        text = says.get(key) or settings.get(key, "UNLIMITED")
        return int(text) if text.isdecimal() else None

    return Partition(
        says["PartitionName"],
        nodes,
        int(says.get("PriorityTier", 1)),
        says.get("Default") == "YES",
        says.get("State", "UP") == "UP",
        says.get("PreemptMode") or settings.get("PreemptMode", "OFF"),
        limit_s(says.get("MaxTime", "UNLIMITED")),
        limit_s(says["DefaultTime"]) if says.get("DefaultTime", "NONE") != "NONE" else None,
        stated("DefMemPerCPU"),
        stated("DefMemPerNode"),
        stated("MaxNodes"),
        says.get("OverSubscribe") == "EXCLUSIVE",
        _over_s(says, settings),
    )


def kill_wait_s(settings: Mapping[str, str]) -> int:
    """Time (``KillWait``) that Slurm gives a job to end after its limit."""
    return int((settings.get("KillWait", "30").split() or ["30"])[0])


def _over_s(says: Mapping[str, str], settings: Mapping[str, str]) -> int | None:
    """Time that jobs of a partition may run beyond their limits, by its own word or that of the cluster; None for
    ever."""
    stated = says.get("OverTimeLimit", "NONE")
    if stated == "NONE":
        stated = (settings.get("OverTimeLimit", "").split() or ["0"])[0]
    return None if stated == "UNLIMITED" else 60 * int(stated)


def _running(
    job: Mapping[str, Any],
    places: Mapping[str, int],
    kinds: tuple[str, ...],
    threads: Mapping[str, int],
    soonest_s: int,
    kill_s: int,
) -> Running:
    """A job that runs, with what it holds on each node.

    Args:
        job: a record of ``squeue``.
        places: node → its place.
        kinds: GPU types.
        threads: node → CPUs of a core.
        soonest_s: the soonest that it can end.
        kill_s: how long Slurm lets it end after its time limit.
    """
    names = [name for name in names_in(str(job["nodes"])) if name in places]
    held = np.zeros((len(names), 2 + len(kinds)), np.int64)
    inside = job.get("job_resources") or {}
    listed = inside.get("nodes")
    each = (listed.get("allocation") if isinstance(listed, Mapping) else inside.get("allocated_nodes")) or []
    by_name = {str(one.get("name") or one.get("nodename")): one for one in each}
    for row, name in enumerate(names):
        held[row, :2] = _held(by_name[name], threads[name]) if name in by_name else _share(job, len(names))
    for row, detail in enumerate((job.get("gres_detail") or [])[: len(names)]):
        for kind, count in gpus_of(detail).items():
            held[row, 2 + (kinds.index(kind) if kind in kinds else kinds.index(UNTYPED))] += count
    return Running(
        int(job["job_id"]),
        str(job["partition"]),
        str(job.get("qos") or ""),
        np.array([places[name] for name in names], np.intp),
        held,
        number(job["start_time"]) or 0,
        max(soonest_s, (number(job["end_time"]) or 2**60) + kill_s),
    )


def _held(one: Mapping[str, Any], threads: int) -> tuple[int, int]:
    """CPUs and MiB that a job holds on a node: Slurm 22.05 lists cores, later versions count CPUs."""
    if "nodename" in one:
        cores = sum(len(socket["cores"]) for socket in one["sockets"].values())
        return cores * threads, int(one["memory_allocated"])
    return int(one["cpus"]["count"]), int(one["memory"]["allocated"])


def _share(job: Mapping[str, Any], nodes: int) -> tuple[int, int]:
    """CPUs and MiB of a job on each node, where Slurm only says how much it holds in all."""
    has = dict(_PAIR.findall(str(job.get("tres_alloc_str") or "").replace(",", " ")))
    return -(-int(has.get("cpu", 0)) // nodes), -(-memory_mib(re.sub(r"\.\d+", "", has.get("mem", "0"))) // nodes)


def _waiting(job: Mapping[str, Any]) -> list[Waiting]:
    """A job that waits for resources or its turn, as often as its array has tasks; none if it waits for anything
    else."""
    if job.get("state_reason") not in ("None", "Resources", "Priority") or not number(job["priority"]):
        return []
    text = str(job.get("array_task_string") or "").partition("%")[0]
    tasks = len(names_in(f"[{text.partition(':')[0]}]")) if text else 1
    return [Waiting(int(job["job_id"]), number(job["priority"]) or 0, ask_in(job))] * tasks


def _groups(text: str, places: Mapping[str, int]) -> tuple[tuple[str, BITS], ...]:
    """Switches and blocks, the smallest first; of a switch that names only switches, their nodes."""
    found: dict[str, BITS] = {}
    for line in text.splitlines():
        says = dict(_PAIR.findall(line))
        name = says.get("SwitchName") or says.get("BlockName") or says.get("AggregatedBlock")
        if name is None:
            continue
        nodes = np.zeros(len(places), bool)
        nodes[[places[one] for one in names_in(says.get("Nodes", "")) if one in places]] = True
        for below in names_in(says.get("Switches", "")):
            nodes |= found.get(below, False)
        found[name] = nodes
    return tuple(sorted(found.items(), key=lambda one: int(one[1].sum())))


def _qos(line: str) -> tuple[str, Qos]:
    """A quality of service of a line of ``sacctmgr``."""
    name, priority, preempts, wall = line.split("|")
    return name, Qos(int(priority or 0), frozenset(preempts.split(",")) - {""}, limit_s(wall) if wall else None)
