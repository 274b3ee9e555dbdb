"""Fields that are read of Slurm's accounting."""

from __future__ import annotations

from mast_opt.live.simulation.traces.slurm import nodes, sacct_text
from mast_opt.live.simulation.traces.slurm.records import STATES, Stage
from mast_opt.planner.importers.fields import Field, Format, Tried, Use, of_columns
from mast_opt.planner.importers.mapped.formats import SCONTROL

TRIED = (
    Tried("Slurm 22.05.8", "sacct --parsable2, sacct --json, sinfo --Node"),
    Tried("Slurm 24.11.5", "sacct --parsable2, sacct --json, sinfo --Node, scontrol show nodes --json"),
)
_STATES = tuple(
    Field(f"state {', '.join(name for name, of in STATES.items() if of is stage)}", Use.READ, stage.value)
    for stage in Stage
)
_TRES = (
    Field("TRES cpu, mem, node, gres/gpu, gres/gpu:TYPE", Use.READ, "sizes and GPU types"),
    Field("TRES gres/shard, gres/mps", Use.WARNED, "shares of GPUs"),
    Field("TRES billing, energy, licences and others", Use.IGNORED, "nothing of a server"),
)
TEXT = Format(
    "Slurm: sacct --parsable2",
    (*of_columns(sacct_text.COLUMNS), Field("rows of steps", Use.IGNORED, "JobID with a dot"), *_STATES, *_TRES),
    Use.IGNORED,
    TRIED,
)
_READ = {
    "job_id": "the job",
    "array.job_id": "the job array",
    "array.task_id": "its task",
    "het.job_id": "the heterogeneous job",
    "het.job_offset": "its component; components become separate jobs, with a warning",
    "time.submission": "when it was handed in",
    "time.start": "when it started; finds clocks that were changed",
    "time.end": "when it ended; 0: it has not",
    "time.elapsed": "how long it ran",
    "time.limit": "limit_s",
    "state.current": "how it ended, or that it was requeued, resized or preempted",
    "partition": "its region: the first",
    "allocation_nodes": "tasks",
    "restart_cnt": "how often it was requeued",
    "account": "tenant",
    "user": "tenant with tenant=user",
    "qos": "tier by tiers=",
    "tres.requested[].type": "what it asked for",
    "tres.requested[].name": "what it asked for",
    "tres.requested[].count": "what it asked for",
    "tres.allocated[].type": "what it held",
    "tres.allocated[].name": "what it held",
    "tres.allocated[].count": "what it held",
}
JSON = Format(
    "Slurm: sacct --json",
    (*(Field(name, Use.READ, help) for name, help in _READ.items()), *_STATES, *_TRES),
    Use.IGNORED,
    TRIED,
)
NODES = Format(
    "Slurm: sinfo --Node in text",
    (*of_columns(nodes.COLUMNS), Field("CoreSpecCount, MemSpecLimit, states", Use.IGNORED, "not in this output")),
    Use.IGNORED,
    TRIED,
)
FORMATS = (TEXT, JSON, NODES, SCONTROL)
