"""A cluster of real Slurm daemons on this machine, and twenty jobs: what is predicted, by mast-opt and by
``sbatch --test-only``, and what Slurm does when they are submitted.

Run as root: ``python -m tests.hosts.slurm.real_slurm FOLDER`` prints the table of docs/how-to/slurm.md, and ends with
an error at the first job that does not start as predicted.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from mast_opt.live.hosts.slurm.forecast import Start, forecast
from mast_opt.live.hosts.slurm.reading import cluster_of, texts_now
from mast_opt.live.hosts.slurm.request import ask_of

NODES = ("a0", "a1", "a2", "a3", "h0", "h1", "h2", "h3")
CONFIG = """
ClusterName=demo
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=28917
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=FOLDER/state
SlurmdSpoolDir=FOLDER/spool/%n
SlurmctldPidFile=FOLDER/slurmctld.pid
SlurmdPidFile=FOLDER/slurmd-%n.pid
SlurmctldLogFile=FOLDER/slurmctld.log
SlurmdLogFile=FOLDER/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,bf_resolution=60
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmdParameters=config_overrides
GresTypes=gpu
MpiDefault=none
KillWait=1
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
TopologyPlugin=topology/tree
NodeName=a[0-3] HERE Port=[28921-28924] CPUs=16 RealMemory=64000 Gres=gpu:a100:8 Feature=a100
NodeName=h[0-3] HERE Port=[28925-28928] CPUs=32 RealMemory=128000 Gres=gpu:h100:8 Feature=h100 Weight=5
PartitionName=DEFAULT DefMemPerCPU=1000 State=UP
PartitionName=batch Nodes=a[0-3],h[0-3] Default=YES PriorityTier=1 MaxTime=2-0 DefaultTime=60
PartitionName=hopper Nodes=h[0-3] PriorityTier=1 MaxTime=1-0 DefaultTime=60
PartitionName=urgent Nodes=a[0-3],h[0-3] PriorityTier=10 PreemptMode=OFF MaxTime=4:00:00 DefaultTime=30
"""
HERE = "NodeHostname=localhost NodeAddr=127.0.0.1 State=UNKNOWN"
TOPOLOGY = """
SwitchName=s0 Nodes=a[0-1]
SwitchName=s1 Nodes=a[2-3]
SwitchName=s2 Nodes=h[0-1]
SwitchName=s3 Nodes=h[2-3]
SwitchName=top Switches=s[0-3]
"""
BUSY = (
    "-p batch -w a0 --gres=gpu:a100:4 -n 4 -t 30",
    "-p batch -w h[0-1] -N2 --gres=gpu:h100:8 -n 16 -t 90",
    "-p hopper -w h[2-3] -N2 --ntasks-per-node=2 -c 4 --gres=gpu:h100:6 --mem=50G -t 120",
    "-p batch -w a1 -n 12 -t 45",
    "-p batch -w a3 --exclusive -N1 -t 20",
    "-p batch -w a2 --gres=gpu:a100:4 -n 2 -t 60",
)
"""Jobs that run."""
WAITING = "-p batch -N4 --gres=gpu:a100:8 -n 8 -t 60"
"""The job that waits before the twenty."""
JOBS = (
    "-n 1 -t 10",
    "-n 1 -t 55",
    "-n 12 -t 30",
    "-p batch,hopper -N 2 --gres=gpu:h100:2 -t 10",
    "-p hopper -N 1 --gpus-per-node=h100:4 -t 60",
    "-N 1 --exclusive -t 10",
    "-N 1 --exclusive -t 90",
    "-N 2 -n 8 --gres=gpu:a100:4 -t 30",
    "-n 2 --gpus-per-task=2 -c 2 -t 20",
    "-G a100:8 -n 1 -t 15",
    "-N 1 --mem=100G -t 30",
    "-C h100 -n 20 -t 30",
    "-p urgent -N 1 --exclusive",
    "-p urgent -N 2 --gres=gpu:h100:8",
    "-p urgent -N 3 --gres=gpu:a100:6 -t 20",
    "-p urgent -n 1 -t 20",
    "-p urgent -N 4 --exclusive -C a100 -t 30",
    "-p urgent -N 8 --exclusive -t 30",
    "-p hopper -N 4 --ntasks-per-node=8 -t 300",
    "-N 5 -n 5 --gres=gpu:h100:1",
)


@dataclass(frozen=True)
class Row:
    """A job: what was predicted and what happened. A start is in minutes from its submission."""

    options: str
    ours: tuple[int, str, tuple[int, ...]] | None
    """Start, nodes and jobs that it stops; None for never."""
    tested: tuple[int, str, tuple[int, ...]] | None
    real: tuple[int, str, tuple[int, ...]] | None
    """Nodes are empty where it waits."""


def call(*words: str) -> subprocess.CompletedProcess[str]:
    """A program that ended."""
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


@contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """A cluster while it runs, in a new folder."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    (folder / "slurm.conf").write_text(CONFIG.replace("FOLDER", str(folder)).replace("HERE", HERE))
    (folder / "topology.conf").write_text(TOPOLOGY)
    types = {"a": "a100", "h": "h100"}
    lines = (f"NodeName={name} Name=gpu Type={types[name[0]]} Count=8 File=/dev/tty[10-17]\n" for name in NODES)
    (folder / "gres.conf").write_text("".join(lines))
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    commands = [["slurmctld", "-D", "-c"], *(["slurmd", "-D", "-N", name] for name in NODES)]
    quiet = subprocess.DEVNULL
    daemons = [subprocess.Popen(words, stdout=quiet, stderr=quiet, start_new_session=True) for words in commands]
    try:
        wait_for(lambda: set(call("sinfo", "--noheader", "--format=%T").stdout.split()) == {"idle"})
        yield
    finally:
        clear()
        for daemon in daemons:
            daemon.send_signal(signal.SIGTERM)
        for daemon in daemons:
            daemon.wait(20)
        del os.environ["SLURM_CONF"]


def wait_for(holds: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Wait until something holds."""
    until = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until, call("squeue").stdout
        time.sleep(0.5)


def states() -> dict[int, tuple[str, str, str, str]]:
    """Number of a job → state, nodes, submission and start."""
    lines = call("squeue", "--noheader", "--format=%i|%T|%N|%V|%S").stdout.split()
    return {int(number): (state, nodes, at, start) for number, state, nodes, at, start in (x.split("|") for x in lines)}


def submit(options: str) -> int:
    """Number of a job that sleeps."""
    words = ["sbatch", "--parsable", "--output=/dev/null", *shlex.split(options), "--wrap", "sleep 7200"]
    return int(call(*words).stdout)


def clear() -> None:
    """Cancel all jobs, and wait until they have ended."""
    call("scancel", "--user=root")
    wait_for(lambda: not states() and set(call("sinfo", "--noheader", "--format=%T").stdout.split()) == {"idle"})


def occupied() -> dict[int, int]:
    """Number of a job → its place among those that run, once all of them do and the waiting one waits."""
    clear()
    running = {submit(options): place for place, options in enumerate(BUSY, 1)}
    wait_for(lambda: all(states()[number][0] == "RUNNING" for number in running))
    first = submit(WAITING)
    wait_for(lambda: states()[first][3] != "N/A")
    return running


def compared(options: str) -> Row:
    """A job on the occupied cluster."""
    running = occupied()
    texts, now_s = texts_now(20.0)
    starts = forecast(cluster_of(texts, now_s), ask_of(["-p", "batch", *shlex.split(options)])).starts
    said = call("sbatch", "--test-only", *shlex.split(options), "--wrap", "true").stderr
    return Row(options, _ours(starts, now_s, running), _tested(said, running), _real(options, running))


def _ours(starts: tuple[Start, ...], now_s: int, running: dict[int, int]) -> tuple[int, str, tuple[int, ...]] | None:
    if not starts:
        return None
    first = starts[0]
    packed = call("scontrol", "show", "hostlist", ",".join(first.nodes)).stdout.strip()
    return round((first.at_s - now_s) / 60), packed, tuple(running[one] for one in first.stops)


def _tested(said: str, running: dict[int, int]) -> tuple[int, str, tuple[int, ...]] | None:
    at, nodes = re.search(r"start at (\S+)", said), re.search(r"on nodes (\S+)", said)
    if at is None or nodes is None:
        return None
    wait_s = (datetime.fromisoformat(at[1]) - datetime.now()).total_seconds()
    stops = re.search(r"Preempts: (\S+)", said)
    numbers = stops[1].split(",") if stops else []
    return round(wait_s / 60), nodes[1], tuple(sorted(running[int(one)] for one in numbers))


def _real(options: str, running: dict[int, int]) -> tuple[int, str, tuple[int, ...]] | None:
    said = call("sbatch", "--parsable", "--output=/dev/null", *shlex.split(options), "--wrap", "sleep 7200").stdout
    if not said:
        return None
    number, until = int(said), time.monotonic() + 25
    while (now := states())[number][0] != "RUNNING" and time.monotonic() < until:
        time.sleep(0.5)
    stopped = tuple(place for one, place in running.items() if now[one][0] != "RUNNING")
    state, nodes, at, start = now[number]
    if start == "N/A":
        return None
    wait_s = (datetime.fromisoformat(start) - datetime.fromisoformat(at)).total_seconds()
    return (0 if state == "RUNNING" else round(wait_s / 60)), nodes, stopped


if __name__ == "__main__":
    with cluster(Path(sys.argv[1])):
        for one in JOBS:
            row = compared(one)
            print(*row.__dict__.values(), sep=" | ", flush=True)
            said = row.ours if row.ours is None or row.ours[0] == 0 else (row.ours[0], "", row.ours[2])
            assert said == row.real, f"predicted {said}, and Slurm did {row.real}"
