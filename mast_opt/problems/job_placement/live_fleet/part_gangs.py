"""Parts of jobs as gangs by themselves (job placement, live fleet)."""

from __future__ import annotations

from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Share
from mast_opt.problems.job_placement.units import WHOLE_JOB_LEVELS


def gangs_of(job: Job) -> tuple[Job, ...]:
    """Each part of a job as a job of its own, as close together as it and the whole job must be; the job itself where
    it has no parts."""
    return tuple(_gang(job, part) for part in job.parts) if job.parts else (job,)


def _gang(job: Job, part: Part) -> Job:
    return Job(
        f"{job.name}/{part.name}",
        job.tier,
        part.tasks,
        part.mgpu,
        part.cpu_mcores,
        part.memory_mib,
        part.gpu_types,
        job.datasets,
        within=min(part.within, job.within, key=WHOLE_JOB_LEVELS.index),
        prefer=job.prefer,
        tenant=job.tenant,
    )


def amounts_of(job: Job, share: Share) -> tuple[int, int]:
    """Millicores and MiB that a share of a job holds."""
    gang: Job | Part = next((part for part in job.parts if part.name == share.part), job)
    return share.tasks * gang.cpu_mcores, share.tasks * gang.memory_mib
