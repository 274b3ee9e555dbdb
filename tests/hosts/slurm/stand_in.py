"""A stand-in for Slurm's programs and its controller: two nodes, one partition, first come first served."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.slurm.host import Programs
from mast_opt.live.hosts.slurm.reading import PROGRAMS

NODES = ("east", "west")
CONFIG = "ClusterName = demo\nSelectTypeParameters = CR_CORE\nKillWait = 1 sec\n"
PARTITION = "PartitionName=batch Nodes=east,west Default=YES PriorityTier=1 State=UP MaxTime=UNLIMITED"


class SlurmStandIn(Programs):
    """Programs of a Slurm that is not there."""

    def __init__(self) -> None:
        self.gpus = dict.fromkeys(NODES, 8)
        self.drained: set[str] = set()
        self.jobs: dict[int, dict[str, Any]] = {}
        self.calls: list[tuple[str, ...]] = []
        self.released: Counter[int] = Counter()
        self.down = ""
        self.topology = ""
        self.config, self.partition = CONFIG, PARTITION

    def texts(self) -> tuple[Mapping[str, str], int]:
        if self.down:
            raise InputError(self.down)
        nodes = [
            {
                "name": name, "partitions": ["batch"], "gres": f"gpu:h100:{count}", "cpus": 64, "real_memory": 512_000,
                "state": "idle", "state_flags": ["DRAIN"] if name in self.drained else [], "features": "", "weight": 1,
            }
            for name, count in self.gpus.items()
        ]  # fmt: skip
        found = dict.fromkeys(PROGRAMS, "")
        found |= {"config.txt": self.config, "partitions.txt": self.partition, "topology.txt": self.topology}
        found |= {
            "sinfo.json": json.dumps({"nodes": nodes}),
            "squeue.json": json.dumps({"jobs": [*self.jobs.values()]}),
        }
        return found, 1_000_000

    def call(self, *words: str) -> None:
        if self.down:
            raise InputError(self.down)
        self.calls.append(words)
        number = next(int(word.removeprefix("jobid=")) for word in words[1:] if word.removeprefix("jobid=").isdecimal())
        job = self.jobs[number]
        if words[0] == "scancel":
            job["job_state"] = "CANCELLED"
        elif words[1] == "update":
            assert job["job_state"] == "PENDING"
            job["required_nodes"] = next(word.partition("=")[2] for word in words if word.startswith("reqnodelist="))
        elif words[1] == "release":
            job["priority"] = 100
            self.released[number] += 1
        elif words[1] == "hold":
            job["priority"] = 0
        else:
            assert words[1] == "requeuehold"
            assert job["job_state"] == "RUNNING"
            self.requeue(number, held=True)

    def submit(self, number: int, gpus: int, comment: str = "mast-opt tier=1", nodes: int = 1, **more: Any) -> None:
        job = {
            "job_id": number, "job_state": "PENDING", "partition": "batch", "qos": "", "nodes": "", "priority": 0,
            "state_reason": "JobHeldUser", "tres_per_node": f"gres:gpu:h100:{gpus}", "node_count": nodes,
            "tasks": nodes, "cpus_per_task": 1, "comment": comment, "requeue": True, "required_nodes": "",
            "start_time": 0, "end_time": 0, "gpus": gpus,
        }  # fmt: skip
        self.jobs[number] = job | more

    def start(self, number: int, *names: str) -> None:
        job = self.jobs[number]
        job |= {"job_state": "RUNNING", "nodes": ",".join(names), "start_time": 1_000_000}
        job["gres_detail"] = [f"gpu:h100:{job['gpus']}" for _ in names]
        job["tres_alloc_str"] = f"cpu={len(names)},mem=0"

    def requeue(self, number: int, *, held: bool = False) -> None:
        self.jobs[number] |= {"job_state": "PENDING", "nodes": "", "priority": 0 if held else 100}

    def schedule(self) -> None:
        """Start released jobs whose nodes have room."""
        used = Counter[str]()
        for job in self.jobs.values():
            if job["job_state"] == "RUNNING":
                used.update(dict.fromkeys(job["nodes"].split(","), job["gpus"]))
        for number, job in self.jobs.items():
            if job["job_state"] != "PENDING" or not job["priority"]:
                continue
            names = job["required_nodes"].split(",") if job["required_nodes"] else [NODES[0]]
            if all(used[name] + job["gpus"] <= self.gpus[name] and name not in self.drained for name in names):
                self.start(number, *names)
                used.update(dict.fromkeys(names, job["gpus"]))
