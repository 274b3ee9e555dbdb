"""Servers of a Slurm cluster, from ``scontrol show nodes --json`` or ``sinfo --Node``: one line for each node and
partition (``--format='%N|%R|%G|%c|%m|%l'``)."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mast_opt.live.simulation.traces.slurm.records import MOST
from mast_opt.live.simulation.traces.slurm.sacct_text import limit_in, read_piped
from mast_opt.planner.importers.notices import warn
from mast_opt.planner.importers.slurm_nodes import SlurmNode, gpus_of, node_in, nodes_of
from mast_opt.planner.importers.traces.csv_table import columns_of
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.schema import integer, label

COLUMNS = (
    label("NODELIST", "node", help="the node"),
    label("PARTITION", "partition", help="a partition that it is in"),
    label("GRES", "gres", help="its generic resources"),
    integer("CPUS", maximum=MOST, help="its cores"),
    integer("MEMORY", maximum=MOST, help="its memory, MB"),
    label("TIMELIMIT", "time", required=False, help="for how long jobs of the partition may run at most"),
)
FORMAT = "%N|%R|%G|%c|%m|%l"
NO_PARTITION = "none"
"""Partition of nodes that are in none."""


@dataclass(frozen=True, slots=True)
class Node:
    """A server: a node, or what it has of one GPU type where it has several."""

    name: str
    partition: str
    """The first one that it is in."""
    gpu_type: str
    """Empty where there are no GPUs."""
    gpus: int
    cores_m: int
    """Millicores of a core."""
    memory_mib: int


def nodes_in(data: bytes, file: str, faults: Faults) -> tuple[list[Node], dict[str, str], dict[str, int]]:
    """The servers of Slurm; partition → the partition that stands for all with which it shares nodes; partition →
    seconds of its time limit, for partitions that have one.
    """
    limits: dict[str, int] = {}
    is_json = data.lstrip()[:1] == b"{"
    found = list(_in_json(data, file, faults) if is_json else _in_text(data, file, faults, limits))
    stands_for: dict[str, str] = {}
    nodes: dict[str, SlurmNode] = {}
    for node in found:
        for partition in node.partitions:
            stands_for.setdefault(partition, partition)
        first = nodes.setdefault(node.name, node).partitions[0]
        for partition in node.partitions:
            _join(stands_for, first, partition)
    of_all = {partition: _root(stands_for, partition) for partition in stands_for}
    several = [node.name for node in nodes.values() if len(node.gpus) > 1]
    if several:
        words = "this node has GPUs of several types: it becomes a server for each, with its cores and memory by GPUs"
        warn(file, words, column="GRES", values=several)
    down = [node.name for node in nodes.values() if not node.available]
    if down:
        warn(file, "this node takes no jobs (down or drained): it is left out", values=down)
    return (
        [
            Node(name, of_all[node.partitions[0]], kind, gpus, int(cores * 1000), int(memory))
            for node in nodes.values()
            if node.available
            for name, kind, gpus, cores, memory in node.parts()
        ],
        of_all,
        limits,
    )


def _in_text(data: bytes, file: str, faults: Faults, limits: dict[str, int]) -> Iterable[SlurmNode]:
    """The nodes that ``sinfo`` lists; the time limits of their partitions are added to ``limits``."""
    raw = read_piped(data, file, COLUMNS, faults)
    table = None if raw is None else columns_of(raw, COLUMNS, faults, ("TIMELIMIT",))
    if table is None:
        return
    names, partitions, resources = (table.labels[name].to_list() for name in ("NODELIST", "PARTITION", "GRES"))
    cores, memory = (table.numbers[name].tolist() for name in ("CPUS", "MEMORY"))
    times = table.labels["TIMELIMIT"].fill_null("").to_list()
    for at, (name, partition) in enumerate(zip(names, partitions, strict=True)):
        try:
            limit = limit_in(times[at])
        except ValueError:
            faults.add(file, "a time such as 1-02:03:04 or infinite", at + 1, "TIMELIMIT", times[at])
        else:
            limits |= {} if limit is None else {partition: limit}
        try:
            gpus = gpus_of(resources[at])
        except ValueError:
            faults.add(file, "(null), or GPUs such as gpu:a100:8", at + 1, "GRES", resources[at])
        else:
            yield SlurmNode(name, (partition,), None, gpus, cores[at], memory[at])


def _in_json(data: bytes, file: str, faults: Faults) -> Iterable[SlurmNode]:
    """The nodes that ``scontrol show nodes --json`` lists; faults for what is no node."""
    try:
        items = nodes_of(json.loads(data))
    except (ValueError, RecursionError) as error:
        faults.add(file, f"JSON ({error})")
        return
    if items is None:
        faults.add(file, "a list of nodes, as scontrol show nodes --json prints it")
    for number, item in enumerate(items or (), 1):
        try:
            for node in node_in(item):
                yield node if node.partitions else replace(node, partitions=(NO_PARTITION,))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            faults.add(file, f"a node as Slurm prints it ({type(error).__name__}: {error})", number)


def _root(stands_for: dict[str, str], partition: str) -> str:
    """Partition of Slurm that stands for all with which this one shares nodes."""
    while stands_for[partition] != partition:
        partition = stands_for[partition]
    return partition


def _join(stands_for: dict[str, str], one: str, other: str) -> None:
    """Let one partition of Slurm stand for two that share nodes."""
    first, second = _root(stands_for, one), _root(stands_for, other)
    if first != second:
        stands_for[second] = first
