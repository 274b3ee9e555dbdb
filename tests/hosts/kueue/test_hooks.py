"""Kueue's hooks: whom workers stop, one cluster that may stop others, and jobs that wait for data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mast_opt.cli.kueue import KueueOptions, params_of
from mast_opt.core.errors import UsageError
from mast_opt.live.hosts.kueue.admission import Admission, Offer
from mast_opt.live.hosts.kueue.api import LightkubeApi
from mast_opt.live.hosts.kueue.dispatcher import Dispatcher
from mast_opt.live.hosts.kueue.hooks import DATA_GATE, boosts, taken_back
from mast_opt.live.hosts.kueue.manager_snapshot import OF_WORKERS
from mast_opt.live.hosts.kueue.manifests import ReplicaFile
from mast_opt.live.hosts.kueue.nomination import DispatchParams, Hook
from mast_opt.live.hosts.kueue.patches import annotated
from mast_opt.live.hosts.kueue.reading import BOOST, BOOST_BEFORE, GATED_BY, cluster_view
from mast_opt.live.hosts.kueue.reading import workload as read
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.live.store.sqlite import open_sqlite
from tests.hosts.kueue.http_stand_in import served
from tests.hosts.kueue.objects import Object, pods, running, workload
from tests.hosts.kueue.preemption_order import GATE, HIGH, Fleet, PreemptingKueue, Worker, measure
from tests.hosts.kueue.stand_in import StandIn
from tests.hosts.kueue.test_dispatcher import Clusters

BOTH = frozenset({Hook.BOOST, Hook.GATES})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    made = open_sqlite(tmp_path)
    yield made
    made.close()


def until_stopping(fleet: Fleet, store: SqlStore) -> PreemptingKueue:
    """A fleet whose loop has chosen victims for an important workload, which the host has not written yet."""
    fleet.begin(store)
    fleet.of.step()
    fleet.live.step()
    fleet.clusters.submit(workload(HIGH, pods(8), priority=1000, uid=HIGH))
    fleet.of.step()
    fleet.live.step()
    kueue = fleet.clusters.kueue
    assert isinstance(kueue, PreemptingKueue)
    return kueue


def boosted(fleet: Fleet) -> dict[str, Object]:
    return {
        one["metadata"]["name"]: one["metadata"]["annotations"]
        for api in fleet.clusters.workers.values()
        for one in api.list("Workload")
        if BOOST_BEFORE in one["metadata"].get("annotations", {})
    }


@pytest.mark.parametrize("seed", range(60))
def test_the_hosts_rules_are_the_documented_order(seed: int) -> None:
    fleet = Fleet(seed, frozenset())
    one = workload(HIGH, pods(4 + seed % 5 * 4), priority=10, uid=HIGH)
    for api in fleet.clusters.workers.values():
        api.create(one)
        worker = Worker(api, False)
        view = cluster_view("worker", [found for kind in OF_WORKERS for found in api.list(kind)])
        found = Admission(view).offer(read(one))
        expected = set() if worker.fits(one, worker.admitted) else {x["metadata"]["name"] for x in worker.victims(one)}
        assert {x.name for x in found.victims} == expected if isinstance(found, Offer) else not expected


def test_with_the_hooks_workers_stop_whom_the_loop_chose_and_nobody_else() -> None:
    seeds = range(24)
    hooked, without = measure(seeds, BOTH, most=20), measure(seeds, frozenset())
    for policy in ("Never", "LowerPriority"):
        fleets, equal = hooked.by_reclaim[policy]
        assert equal == fleets >= 5
    assert without.equal < hooked.equal
    assert hooked.needless == 0
    assert measure(seeds, frozenset(), all_at_once=True).needless > hooked.stopped


def test_boosts_come_before_the_nomination_and_are_taken_back(store: SqlStore) -> None:
    fleet = Fleet(5, frozenset({Hook.BOOST}))
    for api in fleet.clusters.workers.values():
        for one in api.list("Workload"):
            api.patch(annotated("Workload", "default", one["metadata"]["name"], {BOOST: "3", "other": "x"}))
    kueue = until_stopping(fleet, store)
    fleet.of.act()
    while_waiting = boosted(fleet)
    assert while_waiting
    assert {notes[BOOST_BEFORE] for notes in while_waiting.values()} == {"3"}
    assert all(int(notes[BOOST]) < 3 or int(notes[BOOST]) > 3 for notes in while_waiting.values())
    kueue.turn()
    assert kueue.admitted_by
    for _ in range(3):
        fleet.now_ms += 300
        fleet.of.step()
        fleet.live.step()
    assert boosted(fleet) == {}
    left = [one["metadata"]["annotations"] for one in fleet.clusters.workers[kueue.admitted_by].list("Workload")[:-1]]
    assert all(notes == {BOOST: "3", "other": "x"} for notes in left)
    fleet.live.close()


def test_nothing_is_written_to_workers_unless_it_is_asked_for(store: SqlStore) -> None:
    fleet = Fleet(1, frozenset())
    versions = {name: api.version for name, api in fleet.clusters.workers.items()}
    until_stopping(fleet, store)
    fleet.of.act()
    assert {name: api.version for name, api in fleet.clusters.workers.items()} == versions
    fleet.live.close()


def test_further_clusters_try_once_the_gate_of_the_chosen_one_is_open(store: SqlStore) -> None:
    fleet = Fleet(2, frozenset({Hook.GATES}), most=20)
    kueue = until_stopping(fleet, store)
    fleet.of.act()
    (chosen,) = fleet.clusters.status(HIGH)["nominatedClusterNames"]
    api = fleet.clusters.workers[chosen]
    api.create(kueue._copy(fleet.clusters.manager.get(HIGH)))
    fleet.of.step()
    assert [one["position"] for one in api.get(HIGH)["status"]["preemptionGates"]] == ["Open"]
    fleet.of.step()
    names = fleet.clusters.status(HIGH)["nominatedClusterNames"]
    assert names[0] == chosen
    assert len(names) > 1
    kueue.turn()
    assert set(kueue.stopped) == {chosen}
    fleet.live.close()


def test_boosts_that_kueue_makes_useless_leave_others_alone() -> None:
    """With ``reclaimWithinCohort: Any`` borrowed quota is taken back first, whatever the priorities are."""
    cq = {"cohortName": "all", "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}}
    api = Clusters({"east": 8}).workers["east"]
    queues = api.get("cq", "ClusterQueue")
    api.create({**queues, "spec": {**queues["spec"], **cq}})
    api.create({**queues, "metadata": {"name": "other"}, "spec": {**_quota(queues, 0), "cohortName": "all"}})
    api.create(running("borrows", pods(4), of="other"))
    api.create(running("own", pods(4)))
    view = cluster_view("east", [found for kind in OF_WORKERS for found in api.list(kind)])
    high = read(workload(HIGH, pods(4), priority=10))
    assert set(boosts(view, [high], frozenset({"default/own"}))) == {"default/own"}
    assert boosts(view, [high], frozenset({"east/cq/h100"})) == {}  # what stands for lent quota
    for boosted in (True, False):
        assert taken_back(view, high, frozenset({"east/cq/h100"}), boosted=boosted) == ("default/borrows",)
    assert boosts(view, [high], frozenset({"default/gone"})) == {}


def _quota(queue: Object, gpus: int) -> Object:
    (group,) = queue["spec"]["resourceGroups"]
    (flavor,) = group["flavors"]
    resources = [{**one, "nominalQuota": gpus} for one in flavor["resources"]]
    return {"resourceGroups": [{**group, "flavors": [{**flavor, "resources": resources}]}]}


def test_a_job_waits_until_its_data_has_arrived(tmp_path: Path) -> None:
    path = tmp_path / "replicas.csv"
    path.write_text("dataset,cluster\n")  # nothing has arrived when the dispatcher starts
    clusters = Clusters({"east": 8, "west": 8})
    params = DispatchParams(hooks=frozenset({Hook.DATA}))
    replicas = ReplicaFile(path, {"east", "west"})
    dispatcher = Dispatcher(clusters.manager, clusters.workers, params, replicas=replicas)
    gates = {GATED_BY: f"example.com/other, {DATA_GATE}"}
    head = {"apiVersion": "batch/v1", "kind": "Job"}
    clusters.manager.create({**head, "metadata": {"name": "j", "namespace": "default", "annotations": gates}})
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]
    for name, refs in (("of-job", owners), ("alone", [])):
        one = workload(name, datasets="clicks,logs")
        one["metadata"] = {
            **one["metadata"],
            "ownerReferences": refs,
            "annotations": {**one["metadata"]["annotations"], **gates},
        }
        clusters.manager.create(one)

    def job_notes() -> object:
        return clusters.manager.objects["Job", "default", "j"]["metadata"]["annotations"]

    dispatcher.turn()
    assert job_notes() == gates
    path.write_text("dataset,clust")  # half written: as before
    dispatcher.turn()
    path.write_text("dataset,cluster\nclicks,west\nlogs,east\n")
    dispatcher.turn()
    assert job_notes() == gates
    path.write_text("dataset,cluster\nclicks,west\nlogs,east\nlogs,west\n")
    dispatcher.turn()
    assert job_notes() == {GATED_BY: "example.com/other"}
    assert clusters.manager.get("of-job")["metadata"]["annotations"][GATED_BY] == gates[GATED_BY]  # Kueue copies it
    assert clusters.manager.get("alone")["metadata"]["annotations"][GATED_BY] == "example.com/other"


def test_annotations_of_jobs_and_workloads_are_patched_over_http(tmp_path: Path) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "status": {}}
    stand_in = StandIn(workload("w"), job)
    with served(stand_in, tmp_path) as path:
        api = LightkubeApi(path)
        api.patch(annotated("Job", "default", "j", {GATED_BY: "x"}, "batch/v1"))
        api.patch(annotated("Workload", "default", "w", {BOOST: "-7"}))
        api.patch(annotated("Workload", "default", "w", {BOOST: None}))
        api.close()
    assert stand_in.objects["Job", "default", "j"]["metadata"]["annotations"] == {GATED_BY: "x"}
    assert stand_in.get("w")["metadata"]["annotations"] == {}


def test_gates_that_are_closed_or_unknown(store: SqlStore) -> None:
    one = workload("w")
    one["spec"]["preemptionGates"] = [{"name": GATE}, {"name": "b"}]
    one["status"]["preemptionGates"] = [{"name": "b", "position": "Open", "lastTransitionTime": "x"}]
    assert read(one).gates == {GATE: "Closed", "b": "Open"}


def test_hooks_that_are_of_no_use_are_refused() -> None:
    with pytest.raises(UsageError, match="--hook data: expected --replicas"):
        params_of(KueueOptions(hook=["data"]), None)
    assert params_of(KueueOptions(hook=["boost"]), "5").hooks == {Hook.BOOST}
