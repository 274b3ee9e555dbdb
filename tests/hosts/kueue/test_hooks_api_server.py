"""Kueue's hooks against a real API server with Kueue's CRDs: schemas, field managers, roles, and a choice from its
beginning to its end. Kueue's controllers are the stand-in that replays its order of victims."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mast_opt.live.hosts.kueue import patches
from mast_opt.live.hosts.kueue.api import ApiError, KubeApi
from mast_opt.live.hosts.kueue.dispatcher import Dispatcher
from mast_opt.live.hosts.kueue.hooks import DATA_GATE
from mast_opt.live.hosts.kueue.host import KueueHost
from mast_opt.live.hosts.kueue.manifests import ReplicaFile
from mast_opt.live.hosts.kueue.nomination import DispatchParams, Hook
from mast_opt.live.hosts.kueue.patches import KUEUE, MERGE, OURS, Patch
from mast_opt.live.hosts.kueue.reading import BOOST, BOOST_BEFORE, GATED_BY
from mast_opt.live.hosts.kueue.reading import workload as read
from mast_opt.live.hosts.protocol import Host
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.store.sqlite import open_sqlite
from mast_opt.problems.job_placement.live_fleet.types import Server
from tests.hosts.kueue.api_servers import bound, until
from tests.hosts.kueue.conftest import Real
from tests.hosts.kueue.objects import NOW, Object, condition, flavor, local_queue, pods, queue, running, workload
from tests.hosts.kueue.preemption_order import GATE, HIGH, PreemptingKueue
from tests.hosts.kueue.real_api import RealApi
from tests.hosts.kueue.stand_in import StandIn
from tests.hosts.kueue.test_api_server import SOURCE, _allowed, config
from tests.hosts.kueue.test_dispatcher import check, of_kueue
from tests.hosts.test_conformance import KueueWorld
from tests.platforms import needs
from tests.test_deploy import DEPLOY

pytestmark = needs("kube-apiserver")
RBAC, HOOKS = DEPLOY / "kueue" / "rbac.yaml", DEPLOY / "kueue" / "hooks.yaml"


def gated(name: str = "w") -> Object:
    """A copy as MultiKueue makes it: its gate is closed."""
    one = workload(name)
    return {**one, "spec": {**one["spec"], "preemptionGates": [{"name": GATE}]}}


def position(api: RealApi, name: str = "w") -> list[str]:
    return [one["position"] for one in api.get(name)["status"].get("preemptionGates", [])]


def test_a_gate_opens_and_kueue_closes_it_again(real: Real) -> None:
    """Kueue applies all gates under its own name, by force, and so do we with ours."""
    real.east.create(gated())
    states = {"name": GATE, "position": "Closed", "lastTransitionTime": NOW}
    real.kueue.apply(real.east, "w", {"conditions": [condition("QuotaReserved", "False")], "preemptionGates": [states]})
    _, east = real.apis()
    east.patch(patches.gate("default", "w", GATE, "Open", NOW))
    assert position(real.east) == ["Open"]
    assert read(real.east.get("w")).gates == {GATE: "Open"}
    owners = {one["manager"] for one in real.east.get("w")["metadata"]["managedFields"]}
    assert owners >= {KUEUE, OURS}
    real.kueue.apply(real.east, "w", {"conditions": [condition("Evicted")], "preemptionGates": [states]})
    assert position(real.east) == ["Closed"]


@pytest.mark.parametrize("wrong", [{"position": "Ajar"}, {"lastTransitionTime": "noon"}, {"name": "x" * 64}])
def test_the_schema_of_gates_is_checked(real: Real, wrong: Object) -> None:
    real.east.create(gated())
    state = {"name": GATE, "position": "Open", "lastTransitionTime": NOW, **wrong}
    body = {"status": {"preemptionGates": [state]}}
    with pytest.raises(ApiError) as refused:
        real.east.patch(Patch("Workload", "default", "w", MERGE, OURS, False, body))
    assert refused.value.status == 422


def test_boosts_are_annotations_and_change_nothing_else(real: Real) -> None:
    real.east.create(running("own"))
    before = real.east.get("own")
    _, east = real.apis()
    east.patch(patches.annotated("Workload", "default", "own", {BOOST: "-7", BOOST_BEFORE: ""}))
    after = real.east.get("own")
    assert (read(after).boost, read(after).boost_before) == ("-7", "")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    east.patch(patches.annotated("Workload", "default", "own", {BOOST: None, BOOST_BEFORE: None}))
    assert "annotations" not in real.east.get("own")["metadata"]


def cohort(api: RealApi | StandIn, gpus: int, other: int) -> None:
    """A queue that takes back what it has lent, and one that has borrowed of it."""
    api.create(flavor())
    policy = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    api.create(queue(gpus=gpus, cohortName="all", preemption=policy))
    api.create(queue("other", 0, cohortName="all"))
    api.create(local_queue())
    if other:
        api.create(running("borrows", pods(other), priority=1000, of="other"))


class OverReal(KueueWorld):
    """A loop with hooks over API servers that are there already."""

    def __init__(self, manager: KubeApi, workers: dict[str, KubeApi]) -> None:
        super().__init__()
        self.apis = manager, workers

    def host(self, spec_of: Callable[[str], JobSpec]) -> Host:
        params = DispatchParams(most=20, hooks=frozenset({Hook.BOOST, Hook.GATES}))
        self.of = KueueHost(*self.apis, params, ticks=lambda: self.now_ms / 1000)
        return self.of

    def servers(self) -> tuple[Server, ...]:
        return KueueHost(*self.apis).servers()


def test_the_worker_stops_whom_the_loop_chose(real: Real, tmp_path: Path) -> None:
    """Boosts, the nomination, the gate and the admission. The second cluster is a stand-in."""
    west, names = StandIn(), ("east", "west")
    active = {"conditions": [condition("Active")]}
    for one in (check(), config(*names), *(of_kueue("MultiKueueCluster", x, SOURCE, **active) for x in names)):
        real.manager.create(one)
    cohort(real.east, 16, 4)
    cohort(west, 4, 0)
    west.create(running("full", pods(4), priority=1000))
    for name, priority in (("less", 0), ("more", 10)):
        one = running(name, pods(6), priority=priority)
        real.east.create(one)
        checks = [{"name": "mk", "state": "Ready", "message": "", "lastTransitionTime": NOW}]
        real.manager.create({**one, "status": {**one["status"], "clusterName": "east", "admissionChecks": checks}})
    real.east.patch(patches.annotated("Workload", "default", "less", {BOOST: "1000"}))  # else Kueue's choice is ours
    manager, east = real.apis()
    world = OverReal(manager, {"east": east, "west": west})
    hooks = frozenset({Hook.BOOST, Hook.GATES})
    kueue = PreemptingKueue(real.manager, {"east": real.east, "west": west}, np.random.default_rng(1), hooks)
    store = open_sqlite(tmp_path)
    world.begin(store)
    real.manager.create(workload(HIGH, pods(8), priority=2000))
    kueue.reserve(HIGH, "mk")
    seen = []
    for _ in range(8):
        world.now_ms += 300
        world.of.step()
        world.live.step()
        world.of.act()
        seen.append(real.manager.get(HIGH)["status"].get("nominatedClusterNames", []))
        kueue.turn()
        if kueue.admitted_by:
            break
        assert kueue.stopped == {}
    assert (kueue.admitted_by, kueue.stopped) == ("east", {"east": {"borrows", "less"}})
    assert seen[-1] == ["east"]
    words = [one["message"] for one in real.manager.call("GET", "/api/v1/namespaces/default/events")["items"]]
    assert "nominated for east; quota is taken back from default/borrows" in words
    assert check_log(store.read()) == ()
    world.live.close()
    store.close()


def test_a_job_waits_for_its_data(real: Real, tmp_path: Path) -> None:
    path = tmp_path / "replicas.csv"
    path.write_text("dataset,cluster\n")
    active = {"conditions": [condition("Active")]}
    for one in (check(), config("east"), of_kueue("MultiKueueCluster", "east", SOURCE, **active)):
        real.manager.create(one)
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
    waits = {GATED_BY: f"example.com/other,{DATA_GATE}"}
    meta = {"name": "j", "namespace": "default", "annotations": waits}
    head = {"apiVersion": "batch/v1", "kind": "Job"}
    job = real.manager.call("POST", jobs, {**head, "metadata": meta, "spec": {"template": {"spec": pod}}})
    try:
        one = workload("of-job", datasets="clicks")
        owner = {**head, "name": "j", "uid": job["metadata"]["uid"], "controller": True}
        gates = {**one["metadata"]["annotations"], **waits}
        real.manager.create({**one, "metadata": {**one["metadata"], "annotations": gates, "ownerReferences": [owner]}})
        server = real.servers.manager
        with bound(server, HOOKS, "mast-opt-hooks-data"), bound(server, RBAC, "mast-opt-dispatcher"):
            kubeconfig = server.kubeconfig("mast-opt")
            until(lambda: _allowed(kubeconfig))
            manager = real.api(kubeconfig)
            replicas = ReplicaFile(path, {"east"})
            params = DispatchParams(hooks=frozenset({Hook.DATA}))
            dispatcher = Dispatcher(manager, {"east": real.apis()[1]}, params, replicas=replicas)
            dispatcher.turn()
            assert real.manager.call("GET", f"{jobs}/j")["metadata"]["annotations"] == waits
            path.write_text("dataset,cluster\nclicks,east\n")
            dispatcher.turn()
            assert real.manager.call("GET", f"{jobs}/j")["metadata"]["annotations"] == {GATED_BY: "example.com/other"}
    finally:
        real.manager.call("DELETE", f"{jobs}/j")


@pytest.mark.parametrize("hook", ["boost", "gates"])
def test_each_role_is_enough_for_its_hook(real: Real, hook: str) -> None:
    real.east.create(gated())
    of = {
        "boost": patches.annotated("Workload", "default", "w", {BOOST: "-1"}),
        "gates": patches.gate("default", "w", GATE, "Open", NOW),
    }
    server = real.servers.east
    with bound(server, HOOKS, f"mast-opt-hooks-{hook}"), bound(server, RBAC, "mast-opt-dispatcher-worker"):
        path = server.kubeconfig("mast-opt")
        until(lambda: _allowed(path))
        east = real.api(path)
        east.patch(of.pop(hook))
        (other,) = of.values()
        with pytest.raises(ApiError, match="not allowed") as refused:
            east.patch(other)
    assert refused.value.status == 403
