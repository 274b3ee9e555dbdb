"""Verifier of data-placement plans: checks the statement of the problem, sharing no code with any solver.

Feasibility is exact: integers in base units, shares in thousandths, loads of links as fractions, and no
tolerance. A broken limit is named as its row in ``models/data_placement.mod``. A decision that is off its
bounds, or has no column there, is named ``place``, ``run``, ``copy`` or ``remote``; where residency is the
reason, it is named ``residency``.
"""

from fractions import Fraction
from functools import cached_property

import numpy as np

from mast_opt.core.verdict import Verdict
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import NO_GPU, SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.verification.limit_use import limit_use
from mast_opt.problems.data_placement.verification.measures import Activity, measure, totals
from mast_opt.problems.data_placement.verification.violations import Relation, Violations


def verify(problem: DataPlacement, plan: Plan) -> Verdict:
    """Every violation of the plan, and its terms, metrics and objective recomputed from the plan alone.

    Rows of a relation that make no sense (a position off its axis, a share outside 1…1000 thousandths) are
    violations and count for nothing else. Without links a plan may leave out its copies or its remote
    reads: they follow from the replicas and the runs.

    Raises:
        ValueError: arrays of the plan do not fit the problem or one another.
    """
    check = _Check(problem, plan)
    check.replicas()
    check.runs()
    check.copies()
    check.reads()
    check.residency()
    check.sources()
    check.capacities()
    check.link_loads()
    check.limits()
    terms, metrics = measure(problem, check.activity)
    objective = sum(weight * terms[name] for name, weight in problem.objective.weights.items())
    return Verdict(tuple(check.findings.violations), objective, terms, metrics)


def use_of_limits(problem: DataPlacement, plan: Plan) -> dict[str, Fraction]:
    """Name of each of the instance's limits → how much the plan has of it, in the limit's unit."""
    check = _Check(problem, plan)
    check.copies()
    check.reads()
    found = limit_use(problem, check.activity)
    return {name: used / scale if scale else Fraction(0) for name, (used, scale) in found.items()}


class _Check:
    """The rows of the statement, one method a group."""

    def __init__(self, problem: DataPlacement, plan: Plan) -> None:
        p = problem
        if plan.place.shape != (len(p.datasets), len(p.regions)):
            raise ValueError(f"place has shape {plan.place.shape}, expected {(len(p.datasets), len(p.regions))}")
        self.p = p
        self.place = plan.place
        self.findings = Violations()
        kinds = (*p.gpu_types, NO_GPU)
        run = (plan.run_workload, plan.run_region, plan.run_type)
        copy = (plan.copy_dataset, plan.copy_source, plan.copy_target)
        remote = (plan.remote_workload, plan.remote_dataset, plan.remote_source, plan.remote_target)
        data = (p.datasets.labels, p.regions.labels, p.regions.labels)
        sound = self.findings.sound
        self.run = sound(Relation("run", (p.workloads.labels, p.regions.labels, kinds), run, plan.run_share))
        self.copy = sound(Relation("copy", data, copy, plan.copy_share))
        self.remote = sound(Relation("remote", (p.workloads.labels, *data), remote, plan.remote_share))

    @cached_property
    def option_fits(self) -> Bools:
        """[O, R] where each option may run: not banned, no other region pinned, the GPU type supplied."""
        p = self.p
        pins = p.workloads.pinned.sum(axis=1, keepdims=True)
        allowed = ~p.workloads.forbidden & (pins - p.workloads.pinned == 0)
        supplied = np.append(p.regions.supply_mgpu > 0, np.ones((len(p.regions), 1), np.bool_), axis=1)
        fits: Bools = allowed[p.options.workload] & (supplied.T[p.options.gpu_type] | (p.options.mgpu == 0)[:, None])
        return fits

    @cached_property
    def outside(self) -> Bools:
        """[I, R] regions outside the residency of a dataset that has one."""
        restricted = self.p.datasets.residency.any(axis=1, keepdims=True)
        outside: Bools = restricted & ~self.p.datasets.residency
        return outside

    @cached_property
    def link_of(self) -> Ints:
        """[R, R] position of the link from one region to another, or −1."""
        link = np.full((len(self.p.regions), len(self.p.regions)), -1, np.int64)
        if self.p.links is not None:
            link[self.p.links.source, self.p.links.target] = np.arange(len(self.p.links))
        return link

    def replicas(self) -> None:
        """place: pins and bans; copies: how many."""
        p, report = self.p, self.findings.report
        for broken, limit in ((p.datasets.pinned & ~self.place, 1), (p.datasets.forbidden & self.place, 0)):
            at = np.nonzero(broken)
            report("place", (p.datasets.labels, p.regions.labels), at, np.ones(len(at[0]), np.int64), limit, "replicas")
        number, every = self.place.sum(axis=1), (np.arange(len(p.datasets)),)
        report("copies", (p.datasets.labels,), every, p.datasets.copies_min - number, p.datasets.copies_min, "replicas")
        report("copies", (p.datasets.labels,), every, number - p.datasets.copies_max, p.datasets.copies_max, "replicas")

    def runs(self) -> None:
        """run: only where the work may run, and whole unless splittable; served: all of it."""
        p, run, report = self.p, self.run, self.findings.report
        workload, region, kind = run.at
        option = np.full((len(p.workloads), len(p.gpu_types) + 1), -1, np.int64)
        option[p.options.workload, p.options.gpu_type] = np.arange(len(p.options))
        chosen = option[workload, kind]
        fits = chosen >= 0
        fits[fits] = self.option_fits[chosen[fits], region[fits]]
        report("run", run.axes, run.at, np.where(fits, 0, run.share), 0, "share")
        whole = fits & ~p.workloads.splittable[workload]
        report("run", run.axes, run.at, np.where(whole, SHARE - run.share, 0), SHARE, "share")
        served = np.zeros(len(p.workloads), np.int64)
        np.add.at(served, workload, run.share)
        off = served - SHARE if p.may_refuse else abs(served - SHARE)
        report("served", (p.workloads.labels,), (np.arange(len(off)),), off, SHARE, "share")

    def copies(self) -> None:
        """copied: a new replica of what is stored somewhere comes, whole, from regions that hold it today."""
        p, copy, report = self.p, self.copy, self.findings.report
        dataset, source, target = copy.at
        fits = p.datasets.stored[dataset, source] & ~p.datasets.stored[dataset, target]
        if p.links is None:
            fits &= self.place[dataset, target]
        else:
            fits &= (self.link_of[source, target] >= 0) & ~p.datasets.forbidden[dataset, target]
        report("copy", copy.axes, copy.at, np.where(fits, 0, copy.share), 0, "share")
        self.copy = copy.where(fits)
        if p.links is None and not len(copy.share):
            return
        arrived = np.zeros(self.place.shape, np.int64)
        np.add.at(arrived, (dataset[fits], target[fits]), copy.share[fits])
        new = np.nonzero(self.place & ~p.datasets.stored & p.datasets.stored.any(axis=1, keepdims=True))
        report("copied", (p.datasets.labels, p.regions.labels), new, SHARE - arrived[new], SHARE, "share")

    def reads(self) -> None:
        """local: work reads what its region lacks from elsewhere, as far as that is allowed and listed."""
        p, listed, regions = self.p, self.remote, len(self.p.regions)
        workload, dataset, source, target = listed.at
        read = self._read_of(workload, dataset)
        fits = (read >= 0) & p.remote_reads
        if p.links is not None:
            may_run = np.zeros((len(p.workloads), regions), np.bool_)
            option, region = np.nonzero(self.option_fits)
            may_run[p.options.workload[option], region] = True
            fits &= (self.link_of[source, target] >= 0) & may_run[workload, target]
            fits &= ~self._closed_by_other_reads(workload, dataset, target)
        self.findings.report("remote", listed.axes, listed.at, np.where(fits, 0, listed.share), 0, "share")
        self.remote, self.remote_read = listed.where(fits), read[fits]

        need_read, need_region, need_share = self._need
        need = need_read * regions + need_region
        key, at = np.unique(np.append(need, self.remote_read * regions + target[fits]), return_inverse=True)
        needed, given = np.zeros(len(key), np.int64), np.zeros(len(key), np.int64)
        np.add.at(needed, at[: len(need)], need_share)
        np.add.at(given, at[len(need) :], self.remote.share)
        axes = (p.workloads.labels, p.datasets.labels, p.regions.labels)
        where = (p.reads.workload[key // regions], p.reads.dataset[key // regions], key % regions)
        if p.links is not None or not p.remote_reads:
            self.findings.report("local", axes, where, needed - given, given, "share")
        elif len(listed.share):
            self.findings.report("remote", axes, where, abs(needed - given), needed, "share")

    def _closed_by_other_reads(self, workload: Ints, dataset: Ints, region: Ints) -> Bools:
        """Mask [·] of the work that another dataset's residency keeps out of the region, and that does not run there.

        Where the work runs, or where this dataset's own residency is broken, ``residency`` says so.
        """
        p = self.p
        if not self.outside.any():
            return np.zeros(len(workload), np.bool_)
        barred = np.zeros((len(p.workloads), len(p.regions)), np.bool_)
        read, where = np.nonzero(self.outside[p.reads.dataset])
        barred[p.reads.workload[read], where] = True
        barred[self.run.at[0], self.run.at[1]] = False
        closed: Bools = barred[workload, region] & ~self.outside[dataset, region]
        return closed

    def residency(self) -> None:
        """residency: no replica, and no work that reads the dataset, outside the regions listed for the dataset."""
        p, regions, report = self.p, len(self.p.regions), self.findings.report
        if not self.outside.any():
            return
        held = self.place.copy()
        held[self.copy.at[0], self.copy.at[2]] = True
        at = np.nonzero(held & self.outside)
        report("residency", (p.datasets.labels, p.regions.labels), at, np.ones(len(at[0]), np.int64), 0, "replicas")

        read, region, share = self._reading
        target = self.remote.at[3]
        key, at_key = np.unique(
            np.append(read, self.remote_read) * regions + np.append(region, target), return_inverse=True
        )
        most = np.zeros(len(key), np.int64)
        np.maximum.at(most, at_key, np.append(share, self.remote.share))
        where = (p.reads.workload[key // regions], p.reads.dataset[key // regions], key % regions)
        broken = self.outside[where[1], where[2]]
        report(
            "residency",
            (p.workloads.labels, p.datasets.labels, p.regions.labels),
            where,
            np.where(broken, most, 0),
            0,
            "share",
        )

    def _read_of(self, workload: Ints, dataset: Ints) -> Ints:
        """The position of the read of a dataset by a workload, or −1 where there is none."""
        p = self.p
        known = p.reads.workload * len(p.datasets) + p.reads.dataset
        order = np.argsort(known)
        wanted = workload * len(p.datasets) + dataset
        at = np.searchsorted(known[order], wanted)
        found = np.append(known[order], -1)[at] == wanted
        return np.where(found, np.append(order, -1)[at], -1)

    @cached_property
    def _need(self) -> tuple[Ints, Ints, Ints]:
        """(read, region, share) of every read by work in a region that does not hold the dataset."""
        read, region, share = self._reading
        far = ~self.place[self.p.reads.dataset[read], region]
        return read[far], region[far], share[far]

    @cached_property
    def _reading(self) -> tuple[Ints, Ints, Ints]:
        """(read, region, share) of every read by work in a region."""
        p, run = self.p, self.run
        regions = len(p.regions)
        pair, at = np.unique(run.at[0] * regions + run.at[1], return_inverse=True)
        share = np.zeros(len(pair), np.int64)
        np.add.at(share, at, run.share)
        order = np.argsort(p.reads.workload, kind="stable")
        number = np.bincount(p.reads.workload, minlength=len(p.workloads))
        first = np.cumsum(number) - number
        workload = pair // regions
        count = number[workload]
        entry = np.repeat(np.arange(len(pair)), count)
        step = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
        read, region = order[first[workload[entry]] + step], pair[entry] % regions
        return read, region, share[entry]

    def sources(self) -> None:
        """sourced: a region that others read a dataset from holds it."""
        p = self.p
        _, dataset, source, _ = self.remote.at
        taken = np.zeros(self.place.shape, np.int64)
        np.add.at(taken, (dataset, source), self.remote.share)
        readers = np.bincount(p.reads.dataset, minlength=len(p.datasets))
        most = SHARE * readers[:, None] * self.place
        at = np.nonzero(taken > most)
        self.findings.report(
            "sourced", (p.datasets.labels, p.regions.labels), at, taken[at] - most[at], most[at], "share"
        )

    def capacities(self) -> None:
        """Violations of storage, cores, quotas and ingress."""
        p, (workload, region, _), share = self.p, self.run.at, self.run.share
        compare, regions = self.findings.compare, len(self.p.regions)
        every = (np.arange(regions),)
        dataset, holder = np.nonzero(self.place)
        replicas = totals(holder, p.datasets.size_mb[dataset], SHARE, regions)
        outputs = totals(region, p.workloads.output_mb[workload], share, regions)
        stored = [here + there for here, there in zip(replicas, outputs)]
        usable = [
            have * (1000 - keep) // 1000
            for have, keep in zip(p.regions.storage_mb.tolist(), p.regions.headroom_milli.tolist())
        ]
        compare("storage", (p.regions.labels,), every, stored, _thousandths(usable), "MB")

        cores = totals(region, p.workloads.cpu_mcores[workload], share, regions)
        compare("cpu", (p.regions.labels,), every, cores, _thousandths(p.regions.cpu_mcores.tolist()), "millicores")

        apps = len(p.apps)
        by_app = totals(
            region * apps + p.workloads.app[workload], p.workloads.cpu_mcores[workload], share, regions * apps
        )
        used = [by_app[at] for at in (p.cpu_quotas.region * apps + p.cpu_quotas.app).tolist()]
        quotas = (p.cpu_quotas.region, p.cpu_quotas.app)
        compare(
            "quota",
            (p.regions.labels, p.apps),
            quotas,
            used,
            _thousandths(p.cpu_quotas.cpu_mcores.tolist()),
            "millicores",
        )

        new = ~p.datasets.stored[dataset, holder]
        copied = totals(holder[new], p.datasets.size_mb[dataset[new]], SHARE, regions)
        limited = np.flatnonzero(p.regions.ingress_limited)
        most = [int(rate * p.days) for rate in p.regions.ingress_mb_per_day[limited].tolist()]
        compare(
            "ingress", (p.regions.labels,), (limited,), [copied[r] for r in limited.tolist()], _thousandths(most), "MB"
        )

    def link_loads(self) -> None:
        """link: what is read and copied over a link in ``days``."""
        p, a = self.p, self.activity
        if p.links is None:
            return
        count = len(p.links)
        read = totals(a.far_link, p.reads.mb_per_day[a.far_read], a.far_share, count)
        copied = totals(a.copy_link, p.datasets.size_mb[a.copy_dataset], a.copy_share, count)
        load = [daily * p.days + once for daily, once in zip(read, copied)]
        most = [SHARE * capacity * p.days for capacity in p.links.capacity_mb_per_day.tolist()]
        self.findings.compare(
            "link", (p.regions.labels, p.regions.labels), (p.links.source, p.links.target), load, most, "MB"
        )

    def limits(self) -> None:
        """limit: what a whole plan has of something, in base units."""
        for name, (used, scale) in limit_use(self.p, self.activity).items():
            at, most = (np.zeros(1, np.int64),), self.p.limits[name] * scale
            self.findings.compare("limit", ((name,),), at, [SHARE * used], [SHARE * most], LIMITS[name].base)

    @cached_property
    def activity(self) -> Activity:
        """Activity of the plan: the copies and remote reads that are listed or, without links, that are needed."""
        if self.p.links is None:
            none = np.zeros(0, np.int64)
            read, _, share = self._need
            far, copy = (read, share, none), (none, none, none)
        else:
            dataset, source, target = self.copy.at
            far = (self.remote_read, self.remote.share, self.link_of[self.remote.at[2], self.remote.at[3]])
            copy = (dataset, self.copy.share, self.link_of[source, target])
        (workload, region, kind), share = self.run.at, self.run.share
        return Activity(self.place, workload, region, kind, share, *far, *copy)


def _thousandths(amounts: list[int]) -> list[int]:
    """Amounts of the data-placement verifier in thousandths."""
    return [SHARE * amount for amount in amounts]
