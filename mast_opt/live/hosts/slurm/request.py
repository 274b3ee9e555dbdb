"""Requests of jobs to Slurm."""

import argparse
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice, takewhile
from typing import Any, NoReturn

from mast_opt.core.errors import InputError
from mast_opt.planner.importers.slurm_nodes import gpus_of

_RANGE = re.compile(r"(?P<first>[0-9]+)(?:-(?P<last>[0-9]+))?")
_MEMORY = re.compile(r"(?P<amount>[0-9]+)(?P<unit>[KkMmGgTt]?)[Bb]?")
_MIB = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}
_TIME = re.compile(r"(?:(?P<days>[0-9]+)-)?(?P<parts>[0-9]+(?::[0-9]+){0,2})")
UNLIMITED = ("infinite", "unlimited")
MOST_NAMES = 2**20
ELSEWHERE = (
    "account", "chdir", "comment", "error", "export", "input", "job-name", "mail-type", "mail-user", "no-requeue",
    "open-mode", "output", "parsable", "quiet", "requeue", "signal", "verbose", "wckey", "wrap",
)  # fmt: skip
"""Options of ``sbatch`` that change neither place nor time."""
_SHORT = {"account": "A", "chdir": "D", "error": "e", "input": "i", "job-name": "J", "output": "o", "quiet": "Q",
          "verbose": "v"}  # fmt: skip
_FLAGS = ("no-requeue", "parsable", "quiet", "requeue", "verbose")


class Per(Enum):
    """Unit for which memory or GPUs are asked."""

    NODE = "node"
    TASK = "task"
    CPU = "cpu"
    GPU = "gpu"
    JOB = "job"


@dataclass(frozen=True)
class Ask:
    """Request of a job."""

    partitions: tuple[str, ...] = ()
    """Empty for the default one."""
    least_nodes: int = 1
    most_nodes: int | None = None
    tasks: int = 1
    tasks_of_node: int | None = None
    """Number of tasks on each node; None for any."""
    cpus_of_task: int = 1
    memory_mib: int | None = None
    """None for what the partition gives, 0 for all of a node."""
    memory_per: Per = Per.NODE
    gpus: tuple[tuple[str, int], ...] = ()
    """GPU type and how many; the type ``gpu`` is any."""
    gpus_per: Per = Per.NODE
    exclusive: bool = False
    features: str = ""
    on: tuple[str, ...] = ()
    """Nodes that it must have."""
    not_on: tuple[str, ...] = ()
    limit_s: int | None = None
    """None for the partition's."""
    qos: str = ""


def names_in(text: str) -> tuple[str, ...]:
    """Names of a list of Slurm, such as ``n[0-1,7],login``. Raises InputError."""
    found: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        found += islice(_expanded(part), MOST_NAMES + 1)
        if len(found) > MOST_NAMES:
            raise InputError(f"{text[:60]}: expected at most {MOST_NAMES:,} names")
    return tuple(found)


def _expanded(part: str) -> Iterator[str]:
    """Names of a part of a list, with one bracket after the other."""
    head, bracket, rest = part.partition("[")
    if not bracket:
        yield head
        return
    inside, _, tail = rest.partition("]")
    for one in inside.split(","):
        match = _RANGE.fullmatch(one)
        first, last = (match["first"], match["last"] or match["first"]) if match else ("1", "0")
        if int(first) > int(last):
            raise InputError(f"{part}: expected numbers in ascending order in the brackets, as in n[0-3]")
        if int(last) - int(first) > MOST_NAMES:
            raise InputError(f"{part}: expected at most {MOST_NAMES:,} names")
        for number in range(int(first), int(last) + 1):
            yield from (f"{head}{number:0{len(first)}}{after}" for after in _expanded(tail))


def memory_mib(text: str) -> int:
    """MiB of an amount of memory such as ``4G``. Raises InputError."""
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise InputError(f"memory {text!r}: expected a whole number with K, M, G or T")
    return -int(-int(match["amount"]) * _MIB[match["unit"].upper()] // 1)


def limit_s(text: str) -> int | None:
    """Seconds of a time limit (``30`` is in minutes; ``1-12`` is a day and 12 hours); None for no limit.

    Raises InputError.
    """
    if text.lower() in UNLIMITED:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        raise InputError(f"time {text!r}: expected minutes, hours:minutes:seconds or days-hours")
    parts = [int(part) for part in match["parts"].split(":")]
    if match["days"] is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, minutes, seconds = 0, *(*parts, 0)[:2]
    return ((int(match["days"] or 0) * 24 + hours) * 60 + minutes) * 60 + seconds


def script_options(text: str) -> list[str]:
    """Options of the ``#SBATCH`` lines of a script, which end at its first command."""
    found: list[str] = []
    for line in takewhile(lambda one: not one.strip() or one.startswith("#"), text.splitlines()):
        if line.startswith("#SBATCH"):
            found += shlex.split(line.removeprefix("#SBATCH"), comments=True)
    return found


class _Options(argparse.ArgumentParser):
    """A parser that raises InputError."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError for options that cannot be read."""
        raise InputError(f"options of sbatch: {message}; expected options that mast-opt can weigh")


def _parser() -> _Options:
    """The options of ``sbatch`` that are understood."""
    parser = _Options(add_help=False, allow_abbrev=False, usage=argparse.SUPPRESS)
    for names in ("p partition", "C constraint", "w nodelist", "x exclude", "t time", "q qos", "N nodes", "G gpus"):
        short, long = names.split()
        parser.add_argument(f"-{short}", f"--{long}", default="")
    for name in ("gres", "gpus-per-node", "gpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"):
        parser.add_argument(f"--{name}", default="")
    for names in ("n ntasks", "c cpus-per-task", " ntasks-per-node"):
        short, long = names.split(" ")
        parser.add_argument(*([f"-{short}"] if short else []), f"--{long}", type=int)
    parser.add_argument("--exclusive", action="store_true")
    for name in ELSEWHERE:
        spelled = ([f"-{_SHORT[name]}"] if name in _SHORT else []) + [f"--{name}"]
        if name in _FLAGS:
            parser.add_argument(*spelled, action="store_true")
        else:
            parser.add_argument(*spelled)
    return parser


def ask_of(options: Sequence[str]) -> Ask:
    """Request of options of ``sbatch``, a later one before an earlier. Raises InputError for one that it cannot
    weigh."""
    given = _parser().parse_args(options)
    wanted = [(gpus, per) for gpus, per in (
        (_gpus(given.gpus_per_node), Per.NODE), (_gpus(given.gres, "gpu"), Per.NODE),
        (_gpus(given.gpus_per_task), Per.TASK), (_gpus(given.gpus), Per.JOB),
    ) if gpus]  # fmt: skip
    memory = [(memory_mib(text), per) for text, per in (
        (given.mem, Per.NODE), (given.mem_per_cpu, Per.CPU), (given.mem_per_gpu, Per.GPU)
    ) if text]  # fmt: skip
    if len(wanted) > 1 or len(memory) > 1:
        raise InputError("options of sbatch: expected one statement of GPUs and one of memory")
    nodes = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", given.nodes or "1")
    if nodes is None:
        raise InputError(f"--nodes={given.nodes}: expected a number or a range")
    on, each = names_in(given.nodelist), given.ntasks_per_node
    least = max(int(nodes[1]), len(on))
    if not given.nodes and given.ntasks and each:
        least = -(-given.ntasks // each)
    tasks = given.ntasks or least * (each or 1)
    return Ask(
        partitions=tuple(part for part in given.partition.split(",") if part),
        least_nodes=min(least, tasks),
        most_nodes=max(int(nodes[2] or least), len(on)) if given.nodes or on else None,
        tasks=tasks,
        tasks_of_node=each,
        cpus_of_task=given.cpus_per_task or 1,
        memory_mib=memory[0][0] if memory else None,
        memory_per=memory[0][1] if memory else Per.NODE,
        gpus=wanted[0][0] if wanted else (),
        gpus_per=wanted[0][1] if wanted else Per.NODE,
        exclusive=given.exclusive,
        features=given.constraint,
        on=on,
        not_on=names_in(given.exclude),
        limit_s=limit_s(given.time) if given.time else None,
        qos=given.qos,
    )


def _gpus(text: str, prefix: str = "") -> tuple[tuple[str, int], ...]:
    """GPU types and numbers of an option such as ``h100:8``, or ``gpu:h100:8`` with the prefix. Raises InputError."""
    if not text:
        return ()
    text = text.replace("=", ":")
    others = [part for part in text.split(",") if prefix and part.split(":")[0] != prefix]
    try:
        found = gpus_of(text if prefix else ",".join(f"gpu:{part}" for part in text.split(",")))
    except ValueError:
        found = {}
    if others or not found:
        raise InputError(f"{text}: expected GPUs alone, as in gpu:h100:8 of --gres or h100:8 of --gpus-per-node")
    return tuple(found.items())


def number(value: object) -> int | None:
    """A number of Slurm's JSON, plain or as an object that says whether it is set; None where there is none."""
    if isinstance(value, Mapping):
        value = value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def ask_in(job: Mapping[str, Any]) -> Ask:
    """Request of a job of ``squeue --json``. Raises InputError, ValueError."""
    tres, per = next(
        (
            (str(job[key]), one)
            for key, one in (("tres_per_node", Per.NODE), ("tres_per_task", Per.TASK), ("tres_per_job", Per.JOB))
            if "gpu" in str(job.get(key) or "")
        ),
        ("", Per.NODE),
    )
    of_cpu, of_node = number(job.get("memory_per_cpu")), number(job.get("memory_per_node"))
    least = max(1, number(job.get("node_count")) or 1)
    shared = job.get("shared") if isinstance(job.get("shared"), list) else [job.get("shared")]
    limit = number(job.get("time_limit"))
    return Ask(
        partitions=tuple(str(job.get("partition") or "").split(",")),
        least_nodes=least,
        most_nodes=number(job.get("max_nodes")) or None,
        tasks=max(least, number(job.get("tasks")) or 1),
        tasks_of_node=number(job.get("tasks_per_node")) or None,
        cpus_of_task=max(1, number(job.get("cpus_per_task")) or 1),
        memory_mib=of_cpu or of_node,
        memory_per=Per.CPU if of_cpu else Per.NODE,
        gpus=tuple(gpus_of(re.sub("gres[:/]", "", tres).replace("=", ":")).items()),
        gpus_per=per,
        exclusive="none" in (shared or []),
        features=str(job.get("features") or ""),
        on=names_in(str(job.get("required_nodes") or "")),
        not_on=names_in(str(job.get("excluded_nodes") or "")),
        limit_s=None if limit is None else limit * 60,
        qos=str(job.get("qos") or ""),
    )
