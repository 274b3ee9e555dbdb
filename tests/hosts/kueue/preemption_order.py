"""Kueue's documented order of victims, replayed without the code of the host, and what hooks change in random fleets.

    python -m tests.hosts.kueue.preemption_order --fleets 1000

A worker here has one flavor and queues of one cohort. The rules are those of ``pkg/scheduler/preemption`` in Kueue 0.19
(classic preemption): candidates of other queues that use more than their quota, then those of the queue itself; of each
the lowest effective priority first, then the latest reservation, then the uid; as many as make room; and back, in the
reverse order, those that need not stop. MultiKueue's gates are those of KEP-8303.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.live.hosts.kueue.host import KueueHost
from mast_opt.live.hosts.kueue.jobs import is_loan
from mast_opt.live.hosts.kueue.nomination import DispatchParams, Hook
from mast_opt.live.hosts.protocol import Host
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.store.sqlite import open_sqlite
from tests.hosts.kueue.objects import NOW, Object, admission, condition, local_queue, pods, queue, running, workload
from tests.hosts.kueue.stand_in import Api, Kueue
from tests.hosts.kueue.test_dispatcher import Clusters
from tests.hosts.test_conformance import KueueWorld

BOOST = "kueue.x-k8s.io/priority-boost"
GATE = "kueue.x-k8s.io/multikueue"
HIGH = "high"


@dataclass
class Worker:
    """A worker's queues and admitted workloads, as its scheduler sees them."""

    api: Api
    boosts: bool

    def __post_init__(self) -> None:
        self.queues = {one["metadata"]["name"]: one["spec"] for one in self.api.list("ClusterQueue")}
        self.local = {one["metadata"]["name"]: one["spec"]["clusterQueue"] for one in self.api.list("LocalQueue")}
        self.admitted = [one for one in self.api.list("Workload") if one.get("status", {}).get("admission")]

    def gpus(self, one: Object) -> int:
        return sum(
            part["count"] * int(part["template"]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"])
            for part in one["spec"]["podSets"]
        )

    def nominal(self, name: str) -> int:
        (resource,) = self.queues[name]["resourceGroups"][0]["flavors"][0]["resources"]
        return int(resource["nominalQuota"])

    def of(self, one: Object) -> str:
        return str(one["status"]["admission"]["clusterQueue"])

    def priority(self, one: Object) -> int:
        boost = one["metadata"].get("annotations", {}).get(BOOST, "0")
        return int(one["spec"]["priority"]) + (int(boost) if self.boosts else 0)

    def fits(self, one: Object, stay: list[Object], *, borrowing: bool = True) -> bool:
        name = self.local[one["spec"]["queueName"]]
        cohort = self.queues[name].get("cohortName")
        shared = [q for q, spec in self.queues.items() if q == name or (cohort and spec.get("cohortName") == cohort)]
        used = {q: sum(self.gpus(other) for other in stay if self.of(other) == q) for q in shared}
        asked = self.gpus(one)
        if not borrowing and used[name] + asked > self.nominal(name):
            return False
        return sum(used.values()) + asked <= sum(map(self.nominal, shared))

    def borrows(self, name: str, stay: list[Object]) -> bool:
        return sum(self.gpus(other) for other in stay if self.of(other) == name) > self.nominal(name)

    def satisfies(self, one: Object, other: Object, policy: str) -> bool:
        mine, theirs = self.priority(one), self.priority(other)
        newer = mine == theirs and one["metadata"]["creationTimestamp"] < other["metadata"]["creationTimestamp"]
        lower = theirs < mine
        return {"Any": True, "LowerPriority": lower, "LowerOrNewerEqualPriority": lower or newer}.get(policy, False)

    def victims(self, one: Object) -> list[Object]:
        """Whom the scheduler stops for a workload; nobody if there is room, or if that makes none."""
        name = self.local[one["spec"]["queueName"]]
        policy = self.queues[name].get("preemption", {})
        if self.gpus(one) > self.nominal(name):  # nobody is stopped while a queue borrows
            return []
        own = [
            other
            for other in self.admitted
            if self.of(other) == name and self.satisfies(one, other, policy.get("withinClusterQueue", "Never"))
        ]
        others = [
            other
            for other in self.admitted
            if self.of(other) != name
            and self.queues[name].get("cohortName") is not None
            and self.queues[self.of(other)].get("cohortName") == self.queues[name]["cohortName"]
            and self.borrows(self.of(other), self.admitted)
            and self.satisfies(one, other, policy.get("reclaimWithinCohort", "Never"))
        ]

        def order(other: Object) -> tuple[Any, ...]:
            (reserved,) = (c for c in other["status"]["conditions"] if c["type"] == "QuotaReserved")
            later = tuple(-ord(letter) for letter in reserved["lastTransitionTime"])
            return self.priority(other), later, other["metadata"].get("uid", "")

        ranked = [*sorted(others, key=order), *sorted(own, key=order)]
        used = sum(self.gpus(other) for other in self.admitted if self.of(other) == name)
        if not others or used >= self.nominal(name):
            attempts = [True]
        elif used + self.gpus(one) > self.nominal(name):  # no advantage in the hierarchy
            attempts = [False, True]
        else:
            attempts = [True, False]
        for borrowing in attempts:
            advantage = used + self.gpus(one) <= self.nominal(name)
            found = self._attempt(one, name, ranked, borrowing, advantage=advantage)
            if found:
                return found
        return []

    def _attempt(
        self, one: Object, name: str, ranked: list[Object], borrowing: bool, *, advantage: bool
    ) -> list[Object]:
        stay, gone = list(self.admitted), []
        for other in ranked:
            foreign = self.of(other) != name
            if foreign and (not self.borrows(self.of(other), stay) or (borrowing and not advantage)):
                continue
            stay.remove(other)
            gone.append(other)
            if self.fits(one, stay, borrowing=borrowing):
                for back in gone[-2::-1]:
                    if self.fits(one, [*stay, back], borrowing=borrowing):
                        stay.append(back)
                        gone.remove(back)
                return gone
        return []


class PreemptingKueue(Kueue):
    """Kueue's controllers with workers that stop others."""

    def __init__(self, manager: Api, workers: Mapping[str, Api], rng: np.random.Generator, hooks: frozenset[Hook]):
        super().__init__(manager, workers)
        self._seen = {one["metadata"]["name"]: one["status"] for one in manager.list("Workload")}
        self.apis, self.rng, self.hooks = workers, rng, hooks
        self.stopped: dict[str, set[str]] = {}
        """Cluster → names of those that have been stopped."""
        self.admitted_by = ""

    def _copy(self, one: Object) -> Object:
        found = super()._copy(one)
        if Hook.GATES in self.hooks:
            found["spec"] = {**found["spec"], "preemptionGates": [{"name": GATE}]}
        return found

    def _first(self, name: str, nominated: list[str]) -> str | None:
        """All clusters try at the same time; one of those that succeed is first."""
        able = [cluster for cluster in nominated if self._tries(cluster, name)]
        if not able and Hook.GATES in self.hooks:
            self._open_first(name, nominated)
        if not able:
            return None
        self.admitted_by = str(self.rng.choice(able))
        return self.admitted_by

    def _open(self, cluster: str, name: str) -> bool:
        copy = self.apis[cluster].get(name)
        states = {one["name"]: one["position"] for one in copy.get("status", {}).get("preemptionGates", [])}
        return all(states.get(one["name"]) == "Open" for one in copy["spec"].get("preemptionGates", []))

    def _tries(self, cluster: str, name: str) -> bool:
        api = self.apis[cluster]
        worker, copy = Worker(api, Hook.BOOST in self.hooks), api.get(name)
        found = copy.get("status", {})
        if found.get("admission"):
            return True
        if not worker.fits(copy, worker.admitted):
            victims = worker.victims(copy)
            if not victims or not self._open(cluster, name):
                return False
            for one in victims:
                victim = one["metadata"]["name"]
                self.stopped.setdefault(cluster, set()).add(victim)
                api.remove(victim)
                if self.manager.has(victim):
                    self.evict(victim)
        status = {"conditions": [condition("QuotaReserved"), condition("Admitted")], "admission": admission(copy)}
        self.apply(api, name, {**status, "preemptionGates": found.get("preemptionGates", [])})
        return True

    def _open_first(self, name: str, nominated: list[str]) -> None:
        """MultiKueue opens the gate of one that asks, unless one is open."""
        asking = [
            cluster
            for cluster in nominated
            if (worker := Worker(self.apis[cluster], Hook.BOOST in self.hooks)).victims(worker.api.get(name))
        ]
        if asking and not any(self._open(cluster, name) for cluster in nominated):
            cluster = str(self.rng.choice(asking))
            states = [{"name": GATE, "position": "Open", "lastTransitionTime": NOW}]
            self.apply(self.apis[cluster], name, {"preemptionGates": states})


@dataclass
class Fleet(KueueWorld):
    """Clusters full of work of their own, drawn at random."""

    seed: int
    hooks: frozenset[Hook]
    all_at_once: bool = False
    most: int = 1
    chosen: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(self.seed)
        self.clusters = Clusters({f"c{at}": 8 for at in range(int(rng.integers(2, 5)))})
        for name in self.clusters.workers:
            self._fill(name, rng)
        self.clusters.kueue = PreemptingKueue(self.clusters.manager, self.clusters.workers, rng, self.hooks)

    def _fill(self, cluster: str, rng: np.random.Generator) -> None:
        """A queue with work that MultiKueue has sent, and another one of its cohort with work of the cluster's own, on
        nearly all of their quotas."""
        api = self.clusters.workers[cluster]
        within = str(rng.choice(["LowerPriority", "LowerOrNewerEqualPriority"]))
        reclaim = str(rng.choice(["Never", "LowerPriority", "Any"]))
        policy = {"withinClusterQueue": within, "reclaimWithinCohort": reclaim}
        quota = {"cq": int(rng.integers(4, 9)) * 4, "other": int(rng.integers(0, 3)) * 4}
        for name, gpus in quota.items():
            api.create(queue(name, gpus, cohortName="all", preemption=policy))
        api.create(local_queue())
        free, at = sum(quota.values()), 0
        while free > int(rng.integers(0, 4)):
            gpus = min(free, int(rng.choice([1, 2, 2, 4, 4, 8])))
            of = "cq" if rng.random() < 0.8 else "other"
            one = running(f"{cluster}-{at}", pods(gpus), priority=int(rng.choice([-5, 0, 1, 10, 10, 100])), of=of)
            one["metadata"]["uid"] = f"{rng.integers(1 << 40):x}"
            (reserved,) = (c for c in one["status"]["conditions"] if c["type"] == "QuotaReserved")
            reserved["lastTransitionTime"] = f"2026-11-24T03:{rng.integers(60):02}:00Z"
            api.create(one)
            if of == "cq":
                sent = {"clusterName": cluster, "admissionChecks": [{"name": "mk", "state": "Ready"}]}
                self.clusters.manager.create({**one, "status": {**one["status"], **sent}})
            free, at = free - gpus, at + 1

    def host(self, spec_of: Callable[[str], JobSpec]) -> Host:
        self.of = KueueHost(
            self.clusters.manager,
            self.clusters.workers,
            DispatchParams(most=self.most, hooks=self.hooks),
            ticks=lambda: self.now_ms / 1000,
        )
        return self.of

    def _chosen(self, one: JobRecord) -> set[tuple[str, str]]:
        """A chosen workload; those that the nomination names, where the job stands for quota that others have."""
        if not is_loan(one.name.rpartition(":")[2].rpartition(".")[0]):
            return {(one.region, one.name.rpartition("/")[2].partition(".")[0])}
        words = [text.partition("taken back from ")[2] for _, _, text in self.clusters.manager.events]
        return {(one.region, key.rpartition("/")[2]) for text in words for key in text.split(", ") if key}

    def run(self, folder: Path) -> PreemptingKueue:
        """Let one important workload come; returns what Kueue did."""
        kueue = self.clusters.kueue
        assert isinstance(kueue, PreemptingKueue)
        gpus = int(np.random.default_rng([self.seed, 1]).integers(1, 5)) * 4
        if self.all_at_once:
            self.clusters.submit(workload(HIGH, pods(gpus), priority=1000, uid=HIGH))
            names = list(self.clusters.workers)
            status = self.clusters.status(HIGH)
            kueue.apply(self.clusters.manager, HIGH, {**status, "nominatedClusterNames": names})
            kueue.turn()
            return kueue
        store = open_sqlite(folder)
        live = self.begin(store)
        self.of.step()
        self.live.step()
        self.clusters.submit(workload(HIGH, pods(gpus), priority=1000, uid=HIGH))
        for _ in range(8):
            self.now_ms += 300
            self.of.step()
            self.live.step()
            if kueue.admitted_by:
                break
            if not self.chosen:
                stopping = [one for one in live._engine.state.jobs.values() if one.state is JobState.STOPPING]
                self.of.act()
                self.chosen |= {found for one in stopping for found in self._chosen(one)}
            self.of.act()
            kueue.turn()
        live.close()
        store.close()
        return kueue


@dataclass
class Figures:
    """What came of the fleets in which the loop chose victims."""

    fleets: int = 0
    equal: int = 0
    stopped: int = 0
    needless: int = 0
    """Stopped in another cluster than the one where the workload runs now."""
    admitted: int = 0
    by_reclaim: dict[str, tuple[int, int]] = field(default_factory=dict)
    """``reclaimWithinCohort`` of the queue → fleets, and those where jobs stopped = jobs chosen."""


def measure(seeds: range, hooks: frozenset[Hook], *, all_at_once: bool = False, most: int = 1) -> Figures:
    """Figures over fleets; with ``all_at_once``, every cluster is nominated at once, and nobody chooses."""
    found = Figures()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            fleet = Fleet(seed, hooks, all_at_once=all_at_once, most=most)
            kueue = fleet.run(Path(folder))
        stopped = {(cluster, name) for cluster, names in kueue.stopped.items() for name in names}
        found.admitted += bool(kueue.admitted_by)
        found.stopped += len(stopped)
        found.needless += sum(cluster != kueue.admitted_by for cluster, _ in stopped)
        if fleet.chosen and kueue.admitted_by:
            found.fleets += 1
            equal = stopped == fleet.chosen
            found.equal += equal
            policy = fleet.clusters.workers[kueue.admitted_by].get("cq", "ClusterQueue")["spec"]["preemption"]
            fleets, equals = found.by_reclaim.get(policy["reclaimWithinCohort"], (0, 0))
            found.by_reclaim[policy["reclaimWithinCohort"]] = fleets + 1, equals + equal
    return found


def main() -> None:
    """Print the figures of the how-to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fleets", type=int, default=1000)
    seeds = range(parser.parse_args().fleets)
    print("all clusters at once:", measure(seeds, frozenset(), all_at_once=True), flush=True)
    print("boost and gates:", measure(seeds, frozenset({Hook.BOOST, Hook.GATES}), most=20), flush=True)
    print("no hook:", measure(seeds, frozenset()))


if __name__ == "__main__":
    main()
