"""Static infeasibility checks of data placement: limits that contradict one another, seen without solving.

Every conflict is a proof that no plan exists; none found proves nothing. Where work may be refused, what work
needs is no reason.

Domain reduction for data placement: regions that the limits of a single dataset or workload leave possible.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mast_opt.core.verdict import Conflict
from mast_opt.core.wording import listed
from mast_opt.problems.data_placement.problem import Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.verification.measures import total, totals
from mast_opt.problems.data_placement.wording import copies, cores, days, shortfall, tb

ROUNDING = 1e-9
"""Relative error granted to sums of link capacities, the only amounts that are compared as floats."""


@dataclass(frozen=True)
class ReducedDomains:
    """Grids of what is open; nothing that a feasible plan does is closed."""

    p: DataPlacement

    @cached_property
    def new_pins(self) -> Bools:
        """[I, R] replicas that have to be brought in."""
        return self.p.datasets.pinned & ~self.p.datasets.stored

    @cached_property
    def pinned_mb(self) -> list[int]:
        """Storage [R] that pinned replicas take, in MB."""
        return _by_region(self.p.datasets.pinned, self.p.datasets.size_mb)

    @cached_property
    def arriving_mb(self) -> list[int]:
        """[R] size of the datasets pinned there that have to be brought in."""
        return _by_region(self.new_pins, self.p.datasets.size_mb)

    @cached_property
    def fits(self) -> Bools:
        """[I, R] whether there is room for a dataset next to what is pinned."""
        room = [have - taken for have, taken in zip(self.p.usable_storage_mb.tolist(), self.pinned_mb)]
        fits: Bools = self.p.datasets.pinned | (self.p.datasets.size_mb[:, None] <= _int64(room))
        return fits

    @cached_property
    def arrives(self) -> Bools:
        """[I, R] whether a dataset is stored there already, or ingress has room next to the pins that arrive."""
        p = self.p
        room = [most - taken for most, taken in zip(p.ingress_mb.tolist(), self.arriving_mb)]
        free: Bools = (
            p.datasets.stored
            | p.datasets.pinned
            | ~p.regions.ingress_limited
            | (p.datasets.size_mb[:, None] <= _int64(room))
        )
        return free

    @cached_property
    def reached(self) -> Bools:
        """[I, R] whether a dataset is stored there already, stored nowhere (an upload), or links from its holders carry
        it in time.
        """
        p = self.p
        if p.links is None:
            return np.ones(p.datasets.stored.shape, np.bool_)
        capacity = np.zeros((len(p.regions), len(p.regions)))
        linked = np.zeros(capacity.shape)
        capacity[p.links.source, p.links.target] = p.links.capacity_mb_per_day * float(p.days)
        linked[p.links.source, p.links.target] = 1
        carried = (p.datasets.stored @ capacity) * (1 + ROUNDING) >= p.datasets.size_mb[:, None] * (1 - ROUNDING)
        reached: Bools = (
            p.datasets.stored
            | ~p.datasets.stored.any(axis=1, keepdims=True)
            | ((p.datasets.stored @ linked > 0) & carried)
        )
        return reached

    @cached_property
    def holds(self) -> Bools:
        """[I, R] regions that may come to hold a replica."""
        return ~self.p.closed & self.fits & self.arrives & self.reached

    @cached_property
    def quota_mcores(self) -> Ints:
        """[R, A] cores that an application may use in a region: its quota, and no more than there are."""
        p = self.p
        most = np.repeat(p.regions.cpu_mcores[:, None], len(p.apps), axis=1)
        most[p.cpu_quotas.region, p.cpu_quotas.app] = np.minimum(
            p.cpu_quotas.cpu_mcores, p.regions.cpu_mcores[p.cpu_quotas.region]
        )
        return most

    @cached_property
    def supplied(self) -> Bools:
        """[W, R] some GPU type that the workload accepts is there, or it needs none."""
        p = self.p
        there = np.append(p.regions.supply_mgpu > 0, np.ones((len(p.regions), 1), np.bool_), axis=1)
        option = there.T[p.options.gpu_type] | (p.options.mgpu == 0)[:, None]
        found = np.zeros(p.allowed.shape, np.bool_)
        at, region = np.nonzero(option)
        found[p.options.workload[at], region] = True
        return found

    @cached_property
    def room_for_work(self) -> Bools:
        """[W, R] cores and quota for all of the workload, or for any part of it if it splits."""
        p = self.p
        most = self.quota_mcores.T[p.workloads.app]
        fits: Bools = (p.workloads.cpu_mcores[:, None] <= most) | (p.workloads.splittable[:, None] & (most > 0))
        return fits

    @cached_property
    def has_data(self) -> Bools:
        """[W, R] every dataset of the workload may be there, or be read remotely."""
        p = self.p
        lacks = np.zeros(p.allowed.shape, np.bool_)
        if not p.remote_reads:
            read, region = np.nonzero(~self.holds[p.reads.dataset])
            lacks[p.reads.workload[read], region] = True
        return ~lacks

    @cached_property
    def possible(self) -> Bools:
        """[W, R] regions where the workload may run, as far as its own limits say."""
        return self.p.allowed & self.supplied & self.room_for_work & self.has_data


def _by_region(cells: Bools, size: Ints) -> list[int]:
    """Sizes of pairs of dataset and region, added up by region."""
    row, region = np.nonzero(cells)
    return totals(region, size[row], 1, cells.shape[1])


def _int64(amounts: list[int]) -> Ints:
    """Amounts of a data placement's regions as an array; anything below −1 says no more than −1 does."""
    return np.array([max(amount, -1) for amount in amounts], np.int64)


def conflicts(problem: DataPlacement) -> tuple[Conflict, ...]:
    """Conflicts that keep every plan from being feasible: datasets, then regions, workloads and totals."""
    view = ReducedDomains(problem)
    found = [*_of_datasets(view), *_of_regions(view)]
    if not problem.may_refuse:
        found += [*_of_workloads(view), *_of_forced_work(view)]
    return (*found, *_of_totals(view))


def _of_datasets(view: ReducedDomains) -> Iterator[Conflict]:
    """Conflicts of single datasets: pins, forbidden regions and residency."""
    p = view.p
    for i, r in zip(*(at.tolist() for at in np.nonzero(p.datasets.pinned & p.datasets.forbidden))):
        yield _place(
            p, i, r, f"dataset {p.datasets.labels[i]} is both pinned to and forbidden in {p.regions.labels[r]}"
        )
    for i, r in zip(*(at.tolist() for at in np.nonzero(p.datasets.pinned & p.outside))):
        name, region = p.datasets.labels[i], p.regions.labels[r]
        words = f"dataset {name} is pinned to {region}, which is outside its residency ({_homes(p, i)})"
        yield Conflict("residency", (name, region), words)
    for i, r in zip(*(at.tolist() for at in np.nonzero(p.datasets.pinned & ~view.reached))):
        assert p.links is not None  # without links all is reached
        wires = (p.links.target == r) & p.datasets.stored[i, p.links.source]
        late = shortfall(int(p.datasets.size_mb[i]), total(p.links.capacity_mb_per_day[wires]), p.days)
        yield _place(
            p,
            i,
            r,
            f"dataset {p.datasets.labels[i]} ({tb(p.datasets.size_mb[i])}) is pinned to {p.regions.labels[r]}, "
            f"but no links from the regions that hold it carry that much in {days(p.days)}: {late}",
        )
    pins, allowed, holds = p.datasets.pinned.sum(axis=1), (~p.closed).sum(axis=1), view.holds.sum(axis=1)
    for i in np.flatnonzero(
        (p.datasets.copies_min > p.datasets.copies_max)
        | (pins > p.datasets.copies_max)
        | (p.datasets.copies_min > holds)
    ).tolist():
        least, most = int(p.datasets.copies_min[i]), int(p.datasets.copies_max[i])
        name = f"dataset {p.datasets.labels[i]}"
        if least > most:
            words = f"{name} needs at least {copies(least)} but may have at most {most}"
        elif pins[i] > most:
            words = f"{name} is pinned to {int(pins[i])} regions but may have at most {copies(most)}"
        elif p.outside[i].any() and least > (~p.outside[i]).sum():
            words = f"{name} needs {copies(least)} but its residency is only {_homes(p, i)}"
            yield Conflict("residency", (p.datasets.labels[i],), words)
            continue
        elif least > allowed[i] and p.outside[i].any():
            words = (
                f"{name} needs {copies(least)} but rules forbid all regions of its residency ({_homes(p, i)}) "
                f"but {int(allowed[i])}"
            )
        elif least > allowed[i]:
            words = f"{name} needs {copies(least)} but is forbidden in all regions but {int(allowed[i])}"
        else:
            fits = (
                f"needs {copies(least)} but fits in {int(holds[i])} of the {int(allowed[i])} allowed regions"
                if holds[i]
                else f"fits in none of the {int(allowed[i])} allowed regions"
                if allowed[i] > 1
                else "does not fit in the only allowed region"
            )
            words = f"{name} ({tb(p.datasets.size_mb[i])}) {fits}: {_counts(_why_not_held(view, i))}"
        yield Conflict("copies", (p.datasets.labels[i],), words)


def _why_not_held(view: ReducedDomains, i: int) -> list[tuple[str, int]]:
    """Number of regions that fail for each reason; a region counts for the first one that applies."""
    open_to = ~view.p.closed[i]
    reasons = []
    for words, met in (
        ("too little storage after pinned data", view.fits[i]),
        ("too little ingress after pinned data", view.arrives[i]),
        ("no links that carry it in time", view.reached[i]),
    ):
        reasons.append((words, int((open_to & ~met).sum())))
        open_to = open_to & met
    return reasons


def _of_regions(view: ReducedDomains) -> Iterator[Conflict]:
    """Conflicts of single regions: what pins put there is more than storage or ingress."""
    p = view.p
    for r, (pinned, have) in enumerate(zip(view.pinned_mb, p.usable_storage_mb.tolist())):
        if pinned > have:
            words = f"datasets pinned to {p.regions.labels[r]} need {tb(pinned)} but it has {tb(have)} usable storage"
            yield Conflict("storage", (p.regions.labels[r],), words)
    for r, (arriving, most) in enumerate(zip(view.arriving_mb, p.ingress_mb.tolist())):
        if p.regions.ingress_limited[r] and arriving > most:
            words = (
                f"datasets pinned to {p.regions.labels[r]} that it does not hold yet are {tb(arriving)} "
                f"but its ingress takes {tb(most)} in {days(p.days)}: "
                f"{shortfall(arriving, int(p.regions.ingress_mb_per_day[r]), p.days)}"
            )
            yield Conflict("ingress", (p.regions.labels[r],), words)


def _of_workloads(view: ReducedDomains) -> Iterator[Conflict]:
    """Conflicts of single workloads, which can run nowhere."""
    p = view.p
    apart = p.reads_outside.all(axis=1)
    for w in np.flatnonzero(apart).tolist():
        homes = ", ".join(f"{p.datasets.labels[i]} ({_homes(p, i)})" for i in _resident_reads(p, w))
        words = f"workload {p.workloads.labels[w]} reads datasets whose residency has no region in common: {homes}"
        yield Conflict("residency", (p.workloads.labels[w],), words)
    for w in np.flatnonzero(~view.possible.any(axis=1) & ~apart).tolist():
        name, reasons = p.workloads.labels[w], _counts(_why_not_run(view, w))
        yield Conflict("served", (name,), f"workload {name} can run in none of the {len(p.regions)} regions: {reasons}")
    for w in np.flatnonzero(p.workloads.splittable & view.possible.any(axis=1)).tolist():
        need, most = int(p.workloads.cpu_mcores[w]), view.quota_mcores[view.possible[w], p.workloads.app[w]]
        if need > total(most):
            words = (
                f"workload {p.workloads.labels[w]} needs {cores(need)} but may use {cores(total(most))} "
                f"in all regions where it may run"
            )
            yield Conflict("served", (p.workloads.labels[w],), words)


def _why_not_run(view: ReducedDomains, w: int) -> list[tuple[str, int]]:
    """Reasons why a workload can run nowhere, each with the number of regions it rules out."""
    p = view.p
    accepted = [p.gpu_types[k] for k in p.options.gpu_type[p.options.workload == w].tolist() if k < len(p.gpu_types)]
    resident = [p.datasets.labels[i] for i in _resident_reads(p, w)]
    open_to = np.ones(len(p.regions), np.bool_)
    reasons = []
    for words, met in (
        ("closed by workload_rules", p.ruled[w]),
        (f"outside the residency of {listed(resident)}" if resident else "", ~p.reads_outside[w]),
        (f"no GPUs of its types ({', '.join(accepted)})", view.supplied[w]),
        (
            f"fewer than {cores(int(p.workloads.cpu_mcores[w]))} or too small a quota of its application",
            view.room_for_work[w],
        ),
        ("too little room for all of its datasets, and no remote reads,", view.has_data[w]),
    ):
        reasons.append((words, int((open_to & ~met).sum())))
        open_to = open_to & met
    return reasons


def _of_forced_work(view: ReducedDomains) -> Iterator[Conflict]:
    """Regions and quotas that cannot take the work that must run there."""
    p = view.p
    forced = np.flatnonzero(view.possible.sum(axis=1) == 1)
    region = view.possible[forced].argmax(axis=1)
    count, apps = len(p.regions), len(p.apps)
    need, output = p.workloads.cpu_mcores[forced], p.workloads.output_mb[forced]
    by_region = totals(region, need, 1, count)
    by_app = totals(region * apps + p.workloads.app[forced], need, 1, count * apps)
    for r, (asked, have) in enumerate(zip(by_region, p.regions.cpu_mcores.tolist())):
        if asked > have:
            words = f"work that can run only in {p.regions.labels[r]} needs {cores(asked)} but it has {cores(have)}"
            yield Conflict("cpu", (p.regions.labels[r],), words)
    for r, a, have in zip(p.cpu_quotas.region.tolist(), p.cpu_quotas.app.tolist(), p.cpu_quotas.cpu_mcores.tolist()):
        asked = by_app[r * apps + a]
        if asked > have:
            words = (
                f"work of {p.apps[a]} that can run only in {p.regions.labels[r]} needs {cores(asked)} "
                f"but its quota there is {cores(have)}"
            )
            yield Conflict("quota", (p.regions.labels[r], p.apps[a]), words)
    for r, (written, have) in enumerate(zip(totals(region, output, 1, count), p.usable_storage_mb.tolist())):
        if written and view.pinned_mb[r] <= have < view.pinned_mb[r] + written:
            words = (
                f"datasets pinned to {p.regions.labels[r]} need {tb(view.pinned_mb[r])} and outputs of work that can "
                f"run only there {tb(written)}, but it has {tb(have)} usable storage"
            )
            yield Conflict("storage", (p.regions.labels[r],), words)


def _of_totals(view: ReducedDomains) -> Iterator[Conflict]:
    """Conflicts of totals: all replicas and outputs need more than all regions have."""
    p = view.p
    least = np.maximum(p.datasets.copies_min, p.datasets.pinned.sum(axis=1))
    outputs = 0 if p.may_refuse else total(p.workloads.output_mb)
    stored, usable = total(p.datasets.size_mb, least) + outputs, total(p.usable_storage_mb)
    if stored > usable:
        words = f"the fewest copies allowed and all outputs need {tb(stored)} but all regions have {tb(usable)}"
        yield Conflict("storage", (), words)
    if p.regions.ingress_limited.all():
        kept = (p.datasets.stored & ~p.closed).sum(axis=1)
        brought = total(p.datasets.size_mb, np.maximum(least - kept, view.new_pins.sum(axis=1)))
        most = total(p.ingress_mb)
        if brought > most:
            late = shortfall(brought, total(p.regions.ingress_mb_per_day), p.days)
            words = f"at least {tb(brought)} have to be copied but ingress takes {tb(most)} in {days(p.days)}: {late}"
            yield Conflict("ingress", (), words)
    if p.may_refuse:
        return
    asked, have = total(p.workloads.cpu_mcores), total(p.regions.cpu_mcores)
    if asked > have:
        yield Conflict("cpu", (), f"all work needs {cores(asked)} but all regions have {cores(have)}")
    by_app = totals(p.workloads.app, p.workloads.cpu_mcores, 1, len(p.apps))
    for a in np.unique(p.cpu_quotas.app).tolist():
        most = total(view.quota_mcores[:, a])
        if by_app[a] > most:
            words = f"work of {p.apps[a]} needs {cores(by_app[a])} but may use {cores(most)} in all regions together"
            yield Conflict("quota", (p.apps[a],), words)


def _resident_reads(p: DataPlacement, w: int) -> list[int]:
    """The datasets with residency that a workload reads."""
    data = p.reads.dataset[p.reads.workload == w]
    found: list[int] = data[p.datasets.residency[data].any(axis=1)].tolist()
    return found


def _homes(p: DataPlacement, i: int) -> str:
    """The regions of a dataset's residency."""
    return listed([p.regions.labels[r] for r in np.flatnonzero(p.datasets.residency[i])])


def _place(p: DataPlacement, i: int, r: int, words: str) -> Conflict:
    """Conflict of a dataset's place in a region."""
    return Conflict("place", (p.datasets.labels[i], p.regions.labels[r]), words)


def _counts(reasons: list[tuple[str, int]]) -> str:
    """Reasons why a workload can run nowhere, with numbers of regions, in words."""
    return ", ".join(f"{words} in {count}" for words, count in reasons if count)
