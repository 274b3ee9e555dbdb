"""Mix of arrivals of a job-placement instance (exhaustive): the shapes of its pending jobs, each counted once."""

from __future__ import annotations

from mast_opt.job_placement.engine.arrival_mix import ArrivalMix, shape_of, together
from mast_opt.job_placement.engine.limits import DEFAULT_SAMPLING, FillSampling
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.job_placement.units import GPU, WHOLE


def mix_of(problem: JobPlacement, sampling: FillSampling = DEFAULT_SAMPLING) -> ArrivalMix:
    """The mix of all pending jobs; none is drawn yet."""
    p, jobs, mix = problem, problem.jobs, ArrivalMix(sampling)
    largest = max(int(p.servers.supply[:, GPU].max(initial=0)), WHOLE)
    needs: list[dict[str, int]] = [{} for _ in range(len(jobs))]
    for j, k in zip(p.options.job.tolist(), p.options.gpu_type.tolist()):
        needs[j][p.gpu_types[k]] = int(p.need_mgpu[j, k])
    rows = zip(needs, jobs.cpu_mcores.tolist(), jobs.memory_mib.tolist(), jobs.tasks.tolist(), jobs.within.tolist())
    for (need, cpu, memory, tasks, within), prefer in zip(rows, jobs.prefer.tolist()):
        mix.add(*shape_of(need, cpu, memory, tasks, together(within, prefer), largest))
    return mix
