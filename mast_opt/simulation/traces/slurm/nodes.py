"""Servers of a Slurm cluster, from ``sinfo --Node --format='%N|%R|%G|%c|%m'``: one line for each node and partition."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mast_opt.importers.traces.csv_table import columns_of
from mast_opt.io.faults import Faults
from mast_opt.kind.schema import integer, label
from mast_opt.simulation.traces.slurm.records import MOST
from mast_opt.simulation.traces.slurm.sacct_text import read_piped

COLUMNS = (
    label("NODELIST", "node", help="the node"),
    label("PARTITION", "partition", help="a partition that it is in"),
    label("GRES", "gres", help="its generic resources"),
    integer("CPUS", maximum=MOST, help="its cores"),
    integer("MEMORY", maximum=MOST, help="its memory, MB"),
)
FORMAT = "%N|%R|%G|%c|%m"
_GPUS = re.compile(r"gpu(?::([^:()]+))?:([0-9]{1,4})(?:\(.*\))?")


@dataclass(frozen=True, slots=True)
class Node:
    """A server."""

    name: str
    partition: str
    """The first one that it is in."""
    gpu_type: str
    """Empty where GPUs have no type, or there are none."""
    gpus: int
    cores: int
    memory_mib: int


def nodes_in(data: bytes, file: str, faults: Faults) -> tuple[list[Node], dict[str, str]]:
    """The nodes, and partition → the partition that stands for all with which it shares nodes."""
    raw = read_piped(data, file, COLUMNS, faults)
    table = None if raw is None else columns_of(raw, COLUMNS, faults)
    if table is None:
        return [], {}
    stands_for: dict[str, str] = {}
    nodes: dict[str, Node] = {}
    names, partitions, resources = (table.labels[name].to_list() for name in ("NODELIST", "PARTITION", "GRES"))
    cores, memory = (table.numbers[name].tolist() for name in ("CPUS", "MEMORY"))
    for at, (name, partition) in enumerate(zip(names, partitions, strict=True)):
        stands_for.setdefault(partition, partition)
        found = _gpus(resources[at])
        if found is None:
            expected = "(null), or GPUs of one type such as gpu:a100:8"
            faults.add(file, expected, at + 1, "GRES", resources[at])
        elif name in nodes:
            _join(stands_for, nodes[name].partition, partition)
        else:
            nodes[name] = Node(name, partition, found[0], found[1], cores[at], memory[at])
    of_all = {partition: _root(stands_for, partition) for partition in stands_for}
    return [replace(node, partition=of_all[node.partition]) for node in nodes.values()], of_all


def _gpus(text: str) -> tuple[str, int] | None:
    """Type and number of the GPUs that generic resources name; None if that cannot be said."""
    parts = [part for part in re.split(r",(?![^(]*\))", text) if part.startswith("gpu")]
    matches = [_GPUS.fullmatch(part) for part in parts]
    if len(matches) > 1 or None in matches:
        return None
    return ("", 0) if not matches or matches[0] is None else (matches[0][1] or "", int(matches[0][2]))


def _root(stands_for: dict[str, str], partition: str) -> str:
    while stands_for[partition] != partition:
        partition = stands_for[partition]
    return partition


def _join(stands_for: dict[str, str], one: str, other: str) -> None:
    first, second = _root(stands_for, one), _root(stands_for, other)
    if first != second:
        stands_for[second] = first
