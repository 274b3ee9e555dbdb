"""Nodes as Slurm prints them, and what of them jobs can have."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

UNTYPED = "gpu"
"""GPU type where Slurm knows none."""
_GPUS = re.compile(r"gpu(?::(?P<type>\(null\)|[^:()]+?))??(?::(?P<count>[0-9]{1,6})(?P<thousands>[KkMm]?))?(?:\(.*\))?")
_THOUSANDS = {"": 1, "K": 1024, "M": 1024**2}
_BETWEEN = re.compile(r",(?![^(]*\))")
UNAVAILABLE = ("DOWN", "DRAIN", "ERROR", "FAIL", "FUTURE", "INVALID_REG", "NOT_RESPONDING", "UNKNOWN")
"""How the states of nodes begin that take no jobs; ``DRAIN`` stands for DRAINED and DRAINING too."""


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node."""

    name: str
    partitions: tuple[str, ...]
    cluster: str | None
    gpus: Mapping[str, int]
    """GPU type → how many; GPUs without a type are of the type ``gpu``."""
    cores: int
    """CPUs that jobs can have: without those of CoreSpecCount and CpuSpecList."""
    memory_mib: int
    """Memory that jobs can have: without MemSpecLimit."""
    states: tuple[str, ...] = ()

    @property
    def available(self) -> bool:
        """Whether a Slurm node takes jobs: it is not down, drained or failing."""
        return not any(state.startswith(UNAVAILABLE) for state in self.states)

    def parts(self) -> Iterator[tuple[str, str, int, float, float]]:
        """Parts of a Slurm node: name, GPU type, GPUs, cores and memory (MiB), once for each GPU type; cores and memory
        by GPUs.

        A node of several types is one part for each, called ``NODE/TYPE``, so that sums over parts are right.
        """
        if len(self.gpus) < 2:
            kind, count = next(iter(self.gpus.items()), ("", 0))
            yield self.name, kind, count, float(self.cores), float(self.memory_mib)
            return
        total = sum(self.gpus.values())
        for kind, count in self.gpus.items():
            yield f"{self.name}/{kind}", kind, count, self.cores * count / total, self.memory_mib * count / total


def gpus_of(text: str) -> dict[str, int]:
    """GPU type → how many, of generic resources such as ``gpu:a100:4(S:0-1),gpu:v100:2,shard:8``.

    Raises:
        ValueError: GPUs that cannot be read.
    """
    found: dict[str, int] = {}
    for part in _BETWEEN.split(text):
        if part.partition(":")[0].partition("(")[0] != "gpu":
            continue
        match = _GPUS.fullmatch(part)
        if match is None:
            raise ValueError(f"generic resource {part!r}")
        kind = match["type"] if match["type"] not in (None, "(null)") else UNTYPED
        count = int(match["count"] or 1) * _THOUSANDS[(match["thousands"] or "").upper()]
        if count:
            found[kind] = found.get(kind, 0) + count
    return found


def nodes_of(content: object) -> list[Any] | None:
    """Each node, or group of nodes, of ``scontrol show nodes --json`` or ``sinfo --json``; None if it is neither."""
    for key in ("sinfo", "nodes"):
        items = content.get(key) if isinstance(content, dict) else None
        if isinstance(items, list):
            return items
    return None


def node_in(item: Mapping[str, Any]) -> list[SlurmNode]:
    """The nodes of an item: one of ``scontrol show nodes --json``, or a group of equal ones of ``sinfo --json``.

    Raises:
        KeyError, TypeError, ValueError: it is not as Slurm prints it.
    """
    return list(_group(item) if "nodes" in item else [_node(item)])


def _node(item: Mapping[str, Any]) -> SlurmNode:
    """A node from an item of ``scontrol`` or of ``sinfo`` 22.05. Later versions say what is left of the CPUs for
    jobs."""
    cpus = _count(item["cpus"])
    reserved = _count(item.get("specialized_cores")) * max(1, _count(item.get("threads")))
    listed = _cpus_in(item.get("specialized_cpus"))
    left = _count(item["effective_cpus"]) if "effective_cpus" in item else cpus - max(reserved, listed)
    memory = _count(item["real_memory"]) - _count(item.get("specialized_memory"))
    return SlurmNode(
        item["name"],
        tuple(item.get("partitions") or ()),
        item.get("cluster_name"),
        gpus_of(str(item.get("gres") or "")),
        max(0, left),
        max(0, memory),
        _states(item.get("state"), item.get("state_flags")),
    )


def _group(item: Mapping[str, Any]) -> Iterator[SlurmNode]:
    """Nodes of a group of equal ones in ``sinfo --json``. Raises ValueError where they are not equal."""
    cpus, memory, reserved = item["cpus"], item["memory"], item.get("resource_spec") or {}
    names = item["nodes"]["nodes"]
    for resource in (cpus, memory):
        if resource.get("minimum", resource["maximum"]) != resource["maximum"]:
            raise ValueError(f"nodes {', '.join(map(str, names))} are not equal; print them with sinfo --Node --json")
    for name in names:
        yield SlurmNode(
            name,
            (item["partition"]["name"],) if (item.get("partition") or {}).get("name") else (),
            item.get("cluster"),
            gpus_of(str((item.get("gres") or {}).get("total") or "")),
            max(0, _count(cpus["maximum"]) - _cpus_in(reserved.get("cpus"))),
            max(0, _count(memory["maximum"]) - _count(reserved.get("memory"))),
            _states((item.get("node") or {}).get("state")),
        )


def _count(value: object) -> int:
    """A whole number of Slurm's JSON, plain or as an object with the key ``number``; 0 where there is none."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set", True) else 0
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise ValueError(f"{value!r} is no count")
    return value


def _cpus_in(value: object) -> int:
    """CPUs of a list such as ``0-1,6``; Slurm's CpuSpecList."""
    if value in (None, "", "N/A"):
        return 0
    count = 0
    for part in str(value).split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def _states(*values: object) -> tuple[str, ...]:
    """States of a Slurm node in capitals, without the marks of sinfo's short form (``down*``)."""
    given: Iterable[object] = (
        one for value in values for one in (value if isinstance(value, list) else [value] if value else [])
    )
    parts = (part for one in given for part in str(one).upper().split("+"))
    return tuple(part.strip().rstrip("*$~#!%@^-") for part in parts if part.strip())
