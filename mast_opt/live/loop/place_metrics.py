"""Figures of a run that depend on where data, demand and servers are, from its log alone."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from mast_opt.core.solve_result import relative_gap
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.fragmentation import TaskShape, fragmented_mgpu
from mast_opt.live.loop.log_fold import GPU_MILLI, PastJob
from mast_opt.live.loop.past_state import PastState
from mast_opt.live.loop.worst_ratio import Mask, worst_ratio

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class OverTime:
    """A figure that changes with time; None for what no value gives."""

    mean: float | None
    p95: float | None


@dataclass(frozen=True)
class OverPlans:
    """A figure of the plans of a slow path."""

    mean: float
    worst: float


@dataclass(frozen=True)
class Fairness:
    """Finish-time fairness ρ of finished jobs: the time from submission to end over the time that the job would have
    taken with an equal share of the GPUs in service among the jobs that were there (Themis, NSDI'20)."""

    mean: float | None
    worst: float | None
    jain: float | None
    """Jain's index of the ρ: 1 if all are equal, 1 / n if one has everything."""


@dataclass(frozen=True)
class PlaceMetrics:
    """Figures of a window. Ratios by tier count the work of that tier and of more important ones."""

    worst_ratio: dict[int, OverTime]
    """Tier → the least θ with which the demand of the jobs that wait or run can be spread over the regions and GPU
    types where each may run (its data is there, and it is bound to no other region) so that none gets more than θ times
    its supply. Looked at every ``step_s``."""
    planned_ratio: dict[int, float]
    """Tier → mean over the adopted plans of data of their largest demand over supply."""
    plan_gap: dict[str, OverPlans]
    """Slow path → gap between the objective and the proven bound of its plans, as a share of the objective."""
    stranded_gpus: float | None
    """Mean of the GPUs asked for by jobs that no region in service has all data for."""
    started_without_data: int
    """Jobs with an attempt that began where a dataset was missing."""
    waited_for_data: int
    """Jobs that waited although they fitted in a region whose only fault was missing data. Looked at when a job begins
    to wait, and every ``step_s``."""
    not_collocated: float | None
    """Both kinds together over all jobs."""
    storage_overhead: float | None
    """Time mean of what is stored, copies under way included, over the sizes of all datasets, less 1."""
    first_time: float | None
    """Share of the jobs whose workload and set of datasets never came before; None where no job states either."""
    needless: int
    """Stops of jobs for a job that fitted in another region with all its data without a stop."""
    frag: OverTime
    """GPUs that are free and of no use to tasks like those that have come so far (F of FGD); None where a log does not
    say which GPUs are taken. Looked at every ``step_s``."""
    rho: Fairness
    step_s: float
    """Time between two looks."""

    def to_dict(self) -> dict[str, Any]:
        """The figures of places in a log as nested mappings, ready for JSON."""
        return asdict(self)


def place_metrics(
    log: Iterable[ev.Stored], since_ms: int = 0, until_ms: int | None = None, *, step_ms: int = HOUR_MS
) -> PlaceMetrics:
    """The figures of a log.

    Args:
        since_ms: the window's begin; jobs submitted earlier do not count.
        until_ms: its end; that of the log unless given.
        step_ms: how often what changes all the time is looked at.
    """
    sweep = _Sweep(since_ms, step_ms)
    for stored in log:
        if until_ms is not None and stored.at_ms > until_ms:
            break
        sweep.take(stored)
    sweep.finish(until_ms)
    return sweep.metrics()


class _Asked(NamedTuple):
    """Facts that say where a job may run, and for which ratios it counts."""

    tier: int
    datasets: tuple[str, ...]
    bound: str
    gpu_types: frozenset[str] | None


class _Sweep:
    def __init__(self, since_ms: int, step_ms: int) -> None:
        self.since, self.step = since_ms, step_ms
        self.past = PastState()
        self.now = 0
        self.next_look = since_ms
        self.ratios: dict[int, list[float]] = {}
        self.stranded: list[int] = []
        self.fragmented: list[float] = []
        self.shapes: Counter[TaskShape] = Counter()
        self.numbered = True
        """Whether all placements so far say which GPUs are taken."""
        self.solved: dict[tuple[object, ...], tuple[float, int]] = {}
        self.worst: dict[int, Mask] = {}
        """Tier → the set of places that was the worst one when it was last looked at."""
        self.plans: list[ev.PlanAdopted] = []
        self.gaps: dict[str, list[float]] = {}
        self.asked: dict[_Asked, list[int]] = {}
        """Jobs that wait or run with this demand, and their milli-GPUs."""
        self.may_wait: dict[str, PastJob] = {}
        """Jobs that wait, read data, and have not been found to wait for data alone."""
        self.counted: set[str] = set()
        self.known: set[tuple[object, ...]] = set()
        self.first_time = 0
        self.without_data: set[str] = set()
        self.for_data: set[str] = set()
        self.begun: list[str] = []
        """Jobs that have begun to wait at this time."""
        self.needless = 0
        self.overhead_ms = 0.0
        self.stored_ms = 0
        self.active = 0
        self.active_ms = 0
        self.entered: dict[str, tuple[int, int, int]] = {}
        """Job → submission, integral of the jobs there until then, GPUs in service."""
        self.rho: list[float] = []

    def take(self, stored: ev.Stored) -> None:
        """Take in the next event of the log."""
        if stored.at_ms > self.now:
            self._advance(stored.at_ms)
        event = stored.event
        if isinstance(event, ev.Submitted):
            self._submitted(event, stored.at_ms)
        elif isinstance(event, ev.Placed):
            self.numbered = self.numbered and all(share.gpus for share in event.shares)
            if event.victims:
                self._count_needless(event)
        elif isinstance(event, (ev.SolveEnded, ev.PlanAdopted)) and stored.at_ms >= self.since:
            self._planned(event)
        elif isinstance(event, ev.Started):
            self._started(event)
        elif isinstance(event, ev.Stopped):
            self.begun.append(event.job)
        elif isinstance(event, ev.Finished):
            self._finished(event)
        self._take_in(stored)
        self.active = len(self.past.jobs)

    def _take_in(self, stored: ev.Stored) -> None:
        """Take in how an event changes what jobs ask for, and whether they wait."""
        event = stored.event
        if isinstance(event, ev.Bound) and event.job in self.past.jobs:
            self._count(self.past.jobs[event.job], -1)
        for job in self.past.take(stored.at_ms, event):
            self._sort_in(job)
        if isinstance(event, (ev.Submitted, ev.Bound)) and event.job in self.past.jobs:
            self._count(self.past.jobs[event.job], 1)

    def _sort_in(self, job: PastJob) -> None:
        """Take in that a job waits, runs or has ended now."""
        if job.ended:
            self._count(job, -1)
        if job.ended or job.placed is not None or job.name in self.for_data:
            self.may_wait.pop(job.name, None)
        elif job.spec.datasets and job.name in self.counted:
            self.may_wait[job.name] = job

    def _count(self, job: PastJob, sign: int) -> None:
        """Count the demand of a job (sign 1), or no more (−1)."""
        spec = job.spec
        kinds = spec.accepted
        asked = _Asked(spec.tier, spec.datasets, job.bound, None if kinds is None else frozenset(kinds))
        known = self.asked.setdefault(asked, [0, 0])
        known[0] += sign
        known[1] += sign * spec.asked_mgpu
        if not known[0]:
            del self.asked[asked]

    def finish(self, until_ms: int | None) -> None:
        """End the window of a log's metrics."""
        self._advance(self.now if until_ms is None else max(until_ms, self.now))
        if self.next_look == self.now:
            self._look()

    def _advance(self, to_ms: int) -> None:
        """Let time pass in which nothing happens, and measure places at each step of it."""
        for name in self.begun:
            if name in self.past.jobs:
                self._check_data(self.past.jobs[name])
        self.begun.clear()
        while self.next_look < to_ms:  # what happens at that time has happened
            self._look()
            self.next_look += self.step
        length = max(0, to_ms - max(self.now, self.since))
        if self.past.all_mb and length:
            self.overhead_ms += length * (self.past.stored_mb / self.past.all_mb - 1)
            self.stored_ms += length
        self.active_ms += self.active * (to_ms - self.now)
        self.now = to_ms

    # --- what is looked at from time to time ---

    def _look(self) -> None:
        """Measure places at one moment: ratios, stranded jobs, fragmentation."""
        for job in list(self.may_wait.values()):
            self._check_data(job)
        supply = self.past.supply_by_cell()
        if not supply:
            return
        servers = [server for server in self.past.servers.values() if server.in_service and server.idle]
        self.fragmented.append(fragmented_mgpu(servers, self.shapes) / GPU_MILLI)
        cells = list(supply)
        amounts = [supply[cell] for cell in cells]
        by_tier: dict[int, Counter[Mask]] = {}
        masks: dict[tuple[frozenset[str] | None, str, frozenset[str] | None], Mask] = {}
        for asked, (_, mgpu) in self.asked.items():
            holders = self.past.holders(asked.datasets)
            where = holders, asked.bound, asked.gpu_types
            mask = masks.get(where)
            if mask is None:
                mask = masks[where] = frozenset(
                    c
                    for c, (region, kind) in enumerate(cells)
                    if (holders is None or region in holders)
                    and asked.bound in ("", region)
                    and (asked.gpu_types is None or kind in asked.gpu_types)
                )
            by_tier.setdefault(asked.tier, Counter())[mask] += mgpu
        demand: Counter[Mask] = Counter()
        stranded, before = 0, [0.0] * len(self.stranded)
        for tier in sorted(set(by_tier) | set(self.ratios)):
            demand.update(by_tier.get(tier, Counter()))
            ratio, stranded = self._ratio(tier, demand, amounts)
            known = self.ratios.setdefault(tier, list(before))  # until it first comes, it adds nothing
            before = list(known)
            known.append(ratio)
        self.stranded.append(stranded)

    def _ratio(self, tier: int, demand: Counter[Mask], supply: list[int]) -> tuple[float, int]:
        """Worst ratio at a time of the log of demand to supply, and its stranded demand; remembered for equal
        arguments.
        """
        key = tuple(sorted((tuple(sorted(mask)), amount) for mask, amount in demand.items())), tuple(supply)
        if key not in self.solved:
            found = worst_ratio(demand, supply, self.worst.get(tier))
            self.solved[key] = found.ratio, found.stranded
            self.worst[tier] = frozenset(c for c, price in enumerate(found.prices) if price)
        return self.solved[key]

    def _check_data(self, job: PastJob) -> None:
        """Count a job that could run now in a region that only lacks its data: it waits for data alone."""
        if job.placed is not None or job.name in self.for_data or job.name not in self.counted:
            return
        holders = self.past.holders(job.spec.datasets)
        if holders is None:
            return
        if any(
            region not in holders and job.bound in ("", region) and self.past.may_read(job.spec.datasets, region)
            for region in self.past.regions_with_room(job)
        ):
            self.for_data.add(job.name)
            self.may_wait.pop(job.name, None)

    # --- what is looked at when it happens ---

    def _submitted(self, event: ev.Submitted, at_ms: int) -> None:
        """Take in the submission of a job."""
        spec = event.spec
        key = spec.workload, frozenset(spec.datasets)
        if at_ms >= self.since:
            self.counted.add(event.job)
            self.first_time += key not in self.known
        self.known.add(key)
        for one in spec.gangs:
            kinds = None if one.gpu_types is None else frozenset(one.gpu_types)
            self.shapes[TaskShape(one.mgpu, one.cpu_mcores, one.memory_mib, kinds)] += one.tasks
        self.begun.append(event.job)
        self.entered[event.job] = at_ms, self.active_ms, sum(self.past.supply_by_cell().values())

    def _planned(self, event: ev.SolveEnded | ev.PlanAdopted) -> None:
        """Take in the gap or the ratios of a plan."""
        if isinstance(event, ev.PlanAdopted):
            self.plans += [event] if event.ratios is not None else []
        elif event.plan:
            gap = relative_gap(event.objective, event.bound)
            if gap is not None:
                self.gaps.setdefault(event.path, []).append(gap)

    def _started(self, event: ev.Started) -> None:
        """Take in the start of a job: whether its data is in its region."""
        job = self.past.jobs[event.job]
        holders = self.past.holders(job.spec.datasets)
        region = job.placed.region if job.placed is not None else ""
        if holders is not None and region not in holders and event.job in self.counted:
            self.without_data.add(event.job)

    def _count_needless(self, event: ev.Placed) -> None:
        """Count the victims of a placement that another region, with the data and room enough, would have made
        needless.
        """
        job = self.past.jobs[event.job]
        holders = self.past.holders(job.spec.datasets)
        fits = (region for region in self.past.regions_with_room(job) if holders is None or region in holders)
        if any(region != event.region for region in fits):
            self.needless += len(event.victims)

    def _finished(self, event: ev.Finished) -> None:
        """Take in the end of a job: its finish-time fairness."""
        job = self.past.jobs[event.job]
        submitted, active_ms, supply = self.entered.pop(event.job)
        alone, took = job.spec.duration_ms, self.now - submitted
        if event.job not in self.counted or not alone or not took or not supply:
            return
        others = (self.active_ms - active_ms) / took
        self.rho.append(took / (alone * max(1.0, job.spec.asked_mgpu * others / supply)))

    def metrics(self) -> PlaceMetrics:
        """Metrics of places in the log's window."""
        jobs, plans = len(self.counted), self.plans
        tiers = sorted({tier for plan in plans for tier in plan.ratios or ()})
        rho = np.array(self.rho)
        return PlaceMetrics(
            worst_ratio={tier: _over_time(found) for tier, found in sorted(self.ratios.items())},
            planned_ratio={
                tier: float(np.mean([plan.ratios[tier] for plan in plans if plan.ratios and tier in plan.ratios]))
                for tier in tiers
            },
            plan_gap={path: OverPlans(float(np.mean(gaps)), max(gaps)) for path, gaps in sorted(self.gaps.items())},
            stranded_gpus=float(np.mean(self.stranded)) / GPU_MILLI if self.stranded else None,
            started_without_data=len(self.without_data),
            waited_for_data=len(self.for_data),
            not_collocated=len(self.without_data | self.for_data) / jobs if jobs else None,
            storage_overhead=self.overhead_ms / self.stored_ms if self.stored_ms else None,
            first_time=self.first_time / jobs if jobs and self.known != {("", frozenset())} else None,
            needless=self.needless,
            frag=_over_time(self.fragmented if self.numbered else []),
            rho=Fairness(
                float(rho.mean()) if len(rho) else None,
                float(rho.max()) if len(rho) else None,
                float(rho.sum() ** 2 / (len(rho) * (rho**2).sum())) if len(rho) else None,
            ),
            step_s=self.step / 1000,
        )


def _over_time(values: list[float]) -> OverTime:
    """Mean and 95th percentile of a log's figure over the steps of time; None without steps."""
    return OverTime(float(np.mean(values)), float(np.percentile(values, 95))) if values else OverTime(None, None)
