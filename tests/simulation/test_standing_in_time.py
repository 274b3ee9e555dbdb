"""Who stops for whom under quotas in time, checked against the log alone: its own books, and rights worked out again.

``python -m tests.simulation.test_standing_in_time 200`` runs so many larger traces and prints what they count.
"""

from __future__ import annotations

import csv
import io
import sys
import tempfile
from collections import Counter
from collections.abc import Collection
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.core.ranks import Right
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace
from tests.core.test_ledger import Held, covered
from tests.core.test_ledger_trees import beyond, rights_of

HEADER = 'format = "mast-opt/1"\nkind = "job-trace"\nname = "random"\n'
QUOTAS = {
    "none": "",
    "flat": "tenant,gpus\nt,6\nu,4\n",
    "typed": "tenant,gpus,gpu_type\nt,3,A\nt,4,B\nu,5,A\n",
    "tree": "tenant,gpus,parent,borrowing_limit,lending_limit\nlab,2,,4,\nt,6,lab,3,\nu,5,lab,,3\nv,1,,,\n",
}


def trace_of(rng: np.random.Generator, kind: str, jobs: int, folder: Path) -> JobTrace:
    """Jobs of three tenants on six servers of two types, with room for about a third of what is asked."""
    servers = [f"s{n},c{n % 2},b{n},{'AB'[n % 2]},4,64,512" for n in range(6)]
    rows, types, at_s = list[str](), list[str](), 0
    for number in range(jobs):
        at_s += int(rng.integers(0, 60))
        tenant, tier, gpus = str(rng.choice(["t", "u", "v"])), int(rng.integers(3)), int(rng.choice([1, 1, 2, 3, 4]))
        tasks = int(rng.choice([1, 1, 1, 2]))
        preemptible = str(bool(rng.random() < 0.7)).lower()
        rows.append(f"j{number},{at_s},{tier},{tasks},{gpus},{int(rng.integers(30, 900))},{tenant},{preemptible},3600")
        if rng.random() < 0.4:
            types.append(f"j{number},{rng.choice(['A', 'B'])}")
    tables = {
        "instance.toml": HEADER,
        "regions.csv": "region\nr\n",
        "clusters.csv": "cluster,region\nc0,r\nc1,r\n",
        "servers.csv": "\n".join(["server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb", *servers, ""]),
        "submissions.csv": "\n".join(
            ["job,submitted_s,tier,tasks,gpus,duration_s,tenant,preemptible,checkpoint_s", *rows, ""]
        ),
        "job_gpu_types.csv": "\n".join(["job,gpu_type", *types, ""]),
        "quotas.csv": QUOTAS[kind],
    }
    if kind not in ("none", "typed"):
        tables["happenings.csv"] = f"at_s,what,name,value\n{at_s // 2},quota,t,{int(rng.integers(2, 9))}\n"
    for name, text in tables.items():
        if text:
            (folder / name).write_text(text)
    return read_trace(folder)


def quotas_of(kind: str) -> Quotas:
    """The quotas of a table in ``QUOTAS``."""
    found = Quotas()
    for row in csv.DictReader(io.StringIO(QUOTAS[kind])):
        limits = [1000 * int(row[what]) if row.get(what) else None for what in ("borrowing_limit", "lending_limit")]
        found.set(row["tenant"], row.get("gpu_type") or None, Quota(1000 * int(row["gpus"]), *limits))
        found.put_below(row["tenant"], row.get("parent") or "")
    return found


class Books:
    """What runs, by the log alone. A job that is stopped may go on elsewhere at once, on
    room that its beneficiary could not use, or that of less important work; stops never form a circle."""

    def __init__(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self.free: dict[str, int] = {}
        self.type_of: dict[str, str] = {}
        self.specs: dict[str, JobSpec] = {}
        self.held: dict[str, tuple[Held, ev.Placed]] = {}
        self.stopped_at: dict[str, int] = {}
        self.stopped_for: dict[str, set[str]] = {}
        """Job that was stopped in this instant → for whom."""
        self.kept = Counter[str]()
        """Server → what such jobs left: in a round, it is for work more important than they."""
        self.now, self.counts, self.number = 0, Counter[str](), 0

    def take(self, at_ms: int, event: ev.Event) -> None:
        if at_ms != self.now:
            self.now, self.stopped_for, self.kept = at_ms, {}, Counter[str]()
        if isinstance(event, ev.ServerUp):
            self.free[event.server], self.type_of[event.server] = 1000 * event.gpus, event.gpu_type
        elif isinstance(event, ev.QuotaSet):
            limits = Quota(event.mgpu or 0, event.borrowing_mgpu, event.lending_mgpu)
            self.quotas.set(event.tenant, event.gpu_type or None, limits)
            if event.parent:
                self.quotas.put_below(event.tenant, event.parent)
        elif isinstance(event, ev.Submitted):
            self.specs[event.job] = event.spec
        elif isinstance(event, ev.Placed):
            self.place(event)
        elif isinstance(event, (ev.Stopped, ev.Finished)) and event.job in self.held:
            if isinstance(event, ev.Stopped):
                self.stopped_at[event.job] = at_ms
                self.counts["stops"] += 1
            self.end(event.job)

    def end(self, job: str) -> None:
        for share in self.held.pop(job)[1].shares:
            self.free[share.server] += sum(share.gpus.values())

    def place(self, event: ev.Placed) -> None:
        spec, amounts, jobs = (
            self.specs[event.job],
            dict[str, int](),
            {name: one for name, (one, _) in self.held.items()},
        )
        for share in event.shares:
            kind = self.type_of[share.server]
            amounts[kind] = amounts.get(kind, 0) + sum(share.gpus.values())
        self.counts["starts"] += 1
        if self.stopped_at.get(event.job) == self.now:
            self.counts["again"] += 1
            self.counts["again, with victims"] += bool(event.victims)
        rights = rights_of(self.quotas, jobs, spec.tenant, spec.tier, amounts)
        assert event.job not in event.victims
        if event.victims:
            assert not self.fits(event.job), "its beneficiary could have started without the stops"
        for one in event.victims:
            others = set(event.victims) - {one}
            assert not self.fits(event.job, others, rights[0]), f"it could have started without the stop of {one}"
        for victim in event.victims:
            owner, tier, _, _ = jobs[victim]
            within = not self.quotas.nominal(owner) or victim in covered(jobs, owner, self.quotas.nominal(owner))
            if within:
                assert self.specs[victim].preemptible
                assert Right.WITHIN in rights
                assert spec.tier < tier
            else:
                assert Right.WITHIN in rights or spec.tier < tier
            self.stopped_for.setdefault(victim, set()).add(event.job)
            for share in self.held[victim][1].shares:
                self.kept[share.server] += sum(share.gpus.values())
            self.end(victim)
            self.stopped_at[victim] = self.now
            self.counts["stops"] += 1
        tuple(TopologicalSorter(self.stopped_for).static_order())  # CycleError for stops in a circle
        self.held[event.job] = (spec.tenant, spec.tier, self.number, amounts), event
        self.number += 1
        for share in event.shares:
            self.free[share.server] -= sum(share.gpus.values())
        assert min(self.free.values()) >= 0

    def fits(self, name: str, stopped: Collection[str] = (), most: Right = Right.BORROWED) -> bool:
        """Whether a job fits on what is free, and its tenant may hold it by a right that is as good as this one, when
        some have stopped for it."""
        spec, jobs = self.specs[name], {one: held for one, (held, _) in self.held.items() if one not in stopped}
        free = {server: mgpu - self.kept[server] for server, mgpu in self.free.items()}
        for share in (share for one in stopped for share in self.held[one][1].shares):
            free[share.server] += sum(share.gpus.values())
        for gpu_type in ("A", "B"):
            if spec.gpu_types is not None and gpu_type not in spec.gpu_types:
                continue
            need = spec.mgpu if spec.gpu_types is None else spec.gpu_types[gpu_type]
            room = sum(max(0, free[server]) // need for server, kind in self.type_of.items() if kind == gpu_type)
            asked: Held = spec.tenant, spec.tier, self.number, {gpu_type: need * spec.tasks}
            rights = rights_of(self.quotas, jobs, spec.tenant, spec.tier, asked[3])
            if room >= spec.tasks and max(rights) <= most and self.may_hold(asked, [*jobs.values()]):
                return True
        return False

    def may_hold(self, asked: Held, jobs: list[Held]) -> bool:
        """Whether no group above the tenant of a job, nor that itself, would borrow more than it may."""
        path, above = [asked[0]], {tenant: parent for tenant, _, _, parent in self.quotas.rows()}
        while above.get(path[-1]):
            path.append(above[path[-1]])
        over = [beyond(self.quotas, [*jobs, asked], key) for key in self.quotas.nominal(asked[0])]
        return all(of_key.get(node, 0) <= 0 for of_key in over for node in path)


def count(trace: JobTrace, kind: str) -> Counter[str]:
    """Check the log of a trace under ``mast``; returns its stops, and how many of them started again at once."""
    books = Books(quotas_of(kind))
    stored = list(run_trace(trace, "mast").events())
    begun = {(one.event.job, one.event.attempt) for one in stored if isinstance(one.event, ev.Started)}
    for one in stored:
        books.take(one.at_ms, one.event)
        if isinstance(one.event, ev.Placed) and one.event.victims and (one.event.job, one.event.attempt) not in begun:
            books.counts["did not run"] += 1
            replaced = [other.at_ms for other in stored if one.event.job in getattr(other.event, "victims", ())]
            assert one.at_ms in replaced, "work was lost for a job that did not run, nor made room for one that did"
    return books.counts


@given(st.integers(0, 10**6), st.sampled_from(sorted(QUOTAS)))
@example(3, "tree")
@settings(derandomize=True, max_examples=12, deadline=None)
def test_stops_follow_rights(seed: int, kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        count(trace_of(np.random.default_rng(seed), kind, 60, Path(folder)), kind)


if __name__ == "__main__":
    for chosen in QUOTAS:
        total = Counter[str]()
        for number in range(int(sys.argv[1]) // len(QUOTAS)):
            with tempfile.TemporaryDirectory() as folder:
                total += count(trace_of(np.random.default_rng(number), chosen, 120, Path(folder)), chosen)
        print(chosen, dict(total), flush=True)
