"""Small files in the form of other people's, for importers of traces; those in ``data`` are of a real Slurm 22.05."""

from __future__ import annotations

import json
from pathlib import Path

DATA = Path(__file__).parent / "data"

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,96000,393216,8,G2\nn2,64000,262144,2,T4\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,12000,16384,1,1000,,LS,Running,100,3700,110\n"
    "p1,6000,12288,1,460,T4|G2,BE,Succeeded,160,190,160\n"
    "p2,8000,4096,0,0,,Burstable,Failed,200,201,200\n"
    "p3,64000,65536,8,1000,,LS,Pending,300,400,\n"
)
THROUGHPUTS = {
    "v100": {"('A (batch size 1)', 1)": {"null": 2.0}, "('B', 2)": {"null": 4.0}},
    "k80": {"('A (batch size 1)', 1)": {"null": 0.5}, "('B', 2)": {"null": 1.0}},
}
GAVEL = (
    "A (batch size 1)\tpython3 train.py\ttranslation\t-n\t1\t300\t1\t1\t-1.000000\t0\n"
    "B\tpython3 train.py\ttranslation\t-n\t1\t1000\t2\t1\t-1.000000\t60.5\n"
)
CLUSTERS = "vc,node num\nvc0,2\nvc1,1\n"
PHILLY = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 07:00:00,600.0,1,600.0,vc0\n"
    "2017-10-01 07:01:00,900.0,16,14400.0,vc0\n2017-10-02 00:00:00,60.0,2,120.0,vc1\n"
)
SWF = """; Version: 2.2
; Computer: A machine
; UnixStartTime: 1000000000
; MaxNodes: 4
; MaxProcs: 16
1 0 10 100 4 -1 -1 4 -1 -1 1 7 1 3 -1 -1 -1 -1
2 60 0 200 8 -1 -1 8 -1 -1 0 8 1 3 -1 -1 -1 -1
3 90 5 0.5 1 -1 -1 1 -1 -1 1 7 1 -1 -1 -1 -1 -1
"""
ARMADA_NODES = """{"name": "tiny", "clusters": [
 {"name": "pool1", "pool": "cpu", "nodeTemplates": [
  {"number": 1, "totalResources": {"resources": {"cpu": "32", "memory": "1Ti"}}}]},
 {"name": "pool2", "pool": "gpu", "nodeTemplates": [
  {"totalResources": {"resources": {"cpu": "128", "nvidia.com/gpu": "8"}}}]}]}
"""
ARMADA_JOBS = """{"name": "two", "queues": [
 {"name": "ann", "weight": 3, "jobTemplates": [
  {"number": 2, "priorityClassName": "armada-preemptible",
   "requirements": {"resourceRequirements": {"requests": {"cpu": 1, "memory": "512Mi"}}},
   "runtimeDistribution": {"minimum": "1m", "tailMean": "36s"}}]},
 {"name": "bob", "jobTemplates": [
  {"number": 1, "earliestSubmitTime": "1h30m30s", "runtimeDistribution": {"minimum": "60m"},
   "requirements": {"resourceRequirements": {"requests": {"nvidia.com/gpu": 2}}}}]}]}
"""

TEXTS = {
    "nodes.json": ARMADA_NODES,
    "jobs.json": ARMADA_JOBS,
    "nodes.csv": NODES,
    "pods.csv": PODS,
    "throughputs.json": json.dumps(THROUGHPUTS),
    "two.trace": GAVEL,
    "philly.csv": PHILLY,
    "clusters.csv": CLUSTERS,
    "log.swf": SWF,
}
STORED = ("sacct.txt", "sacct.json", "sinfo.txt")


def content(name: str) -> bytes:
    """The content of one of the files."""
    return TEXTS[name].encode() if name in TEXTS else (DATA / name).read_bytes()


def write(folder: Path) -> None:
    """All of them in a folder."""
    for name in (*TEXTS, *STORED):
        (folder / name).write_bytes(content(name))


INPUTS = {
    "armada": ("nodes.json", "jobs.json"),
    "gavel-trace": ("throughputs.json", "two.trace"),
    "openb": ("nodes.csv", "pods.csv"),
    "philly": ("philly.csv", "clusters.csv"),
    "sacct": ("sacct.txt", "sinfo.txt"),
    "swf": ("log.swf",),
}
"""Importer → its inputs among these files."""
GIVEN = {"gavel-trace": {"gpus": "v100=2,k80=4", "server": "2"}}
"""Importer → settings that go with them."""
