"""The dispatcher with the stand-in for API servers and Kueue: nominations, rounds, checks, and what goes wrong."""

from __future__ import annotations

import datetime
import itertools
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mast_opt.live.hosts.kueue import patches
from mast_opt.live.hosts.kueue.admission import Admission
from mast_opt.live.hosts.kueue.api import ApiError
from mast_opt.live.hosts.kueue.dispatcher import Decision, Dispatcher
from mast_opt.live.hosts.kueue.manager_snapshot import CHECK, MULTIKUEUE
from mast_opt.live.hosts.kueue.nomination import DispatchParams
from mast_opt.live.hosts.kueue.patches import Patch
from mast_opt.live.hosts.kueue.reading import cluster_view
from tests.hosts.kueue.objects import Object, flavor, local_queue, pods, queue, running, workload
from tests.hosts.kueue.stand_in import Kueue, StandIn


def of_kueue(kind: str, name: str, spec: Object, **status: Any) -> Object:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name, "generation": 1},
        "spec": spec,
        "status": status,
    }


def check(name: str = "mk", controller: str = MULTIKUEUE) -> Object:
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "config"}
    return of_kueue("AdmissionCheck", name, {"controllerName": controller, "parameters": parameters})


def connected(name: str, status: str = "True") -> Object:
    return of_kueue("MultiKueueCluster", name, {}, conditions=[{"type": "Active", "status": status}])


class Clusters:
    """A manager, workers of so many GPUs, and a dispatcher between them."""

    def __init__(self, gpus: dict[str, int], *checks: Object, clears: bool = False, **more: Any) -> None:
        config = of_kueue("MultiKueueConfig", "config", {"clusters": list(gpus)})
        self.manager = StandIn(*(checks or (check(),)), config, *map(connected, gpus), clears=clears)
        self.workers = {name: StandIn(queue(gpus=count), flavor(), local_queue()) for name, count in gpus.items()}
        self.kueue = Kueue(self.manager, self.workers)
        self.now = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)
        self.dispatcher = Dispatcher(self.manager, self.workers, now=lambda: self.now, **more)

    def submit(self, one: Object, *checks: str) -> None:
        self.manager.create(one)
        self.kueue.reserve(one["metadata"]["name"], *(checks or ("mk",)))

    def status(self, name: str) -> Object:
        found = self.manager.get(name)["status"]
        assert isinstance(found, dict)
        return found

    def later(self, seconds: float) -> None:
        self.now += datetime.timedelta(seconds=seconds)


def test_a_workload_goes_where_it_fits_and_nowhere_else() -> None:
    clusters = Clusters({"east": 8, "west": 64})
    clusters.workers["east"].create(running("busy"))
    clusters.submit(workload("w", pods(8, 2)))
    (decision,) = clusters.dispatcher.turn()
    assert (decision.does, decision.clusters, decision.done, decision.error) == ("nominate", ("west",), True, "")
    assert clusters.status("w")["nominatedClusterNames"] == ["west"]
    clusters.kueue.turn()
    assert clusters.status("w")["clusterName"] == "west"
    assert "nominatedClusterNames" not in clusters.status("w")
    assert ("Workload", "default", "w") not in clusters.workers["east"].objects
    assert clusters.dispatcher.turn() == []
    ((name, reason, message),) = clusters.manager.events
    assert (name, reason) == ("w", "Nominated")
    assert message.startswith("nominated for west; west: fits on h100; east: ")


def test_what_kueue_owns_stays_as_it_is() -> None:
    clusters = Clusters({"east": 8})
    clusters.submit(workload("w"))
    before = clusters.status("w")
    clusters.dispatcher.turn()
    after = dict(clusters.status("w"))
    assert after.pop("nominatedClusterNames") == ["east"]
    assert after == before
    (entry,) = clusters.manager.get("w")["metadata"]["managedFields"]
    assert entry["manager"] == "kueue-admission"


@pytest.mark.parametrize("clears", [True, False])
def test_without_apply_by_kueue_a_nomination_is_our_own(clears: bool) -> None:
    clusters = Clusters({"east": 8}, clears=clears)
    if clears:
        clusters.submit(workload("w"))
    else:  # Kueue merges its patches
        one = running("w")
        one["status"]["conditions"].pop()
        one["status"]["admissionChecks"] = [{"name": "mk", "state": "Pending"}]
        clusters.manager.create(one)
    clusters.dispatcher.turn()
    assert clusters.status("w")["nominatedClusterNames"] == ["east"]
    managers = {one["manager"]: one["operation"] for one in clusters.manager.get("w")["metadata"]["managedFields"]}
    assert managers[patches.OURS] == "Update"


def test_a_field_alone_would_wipe_the_reservation() -> None:
    """Why nominations are full copies: the stand-in does here what the real API server did."""
    clusters = Clusters({"east": 8})
    clusters.submit(workload("w"))
    alone = {"metadata": {}, "status": {"nominatedClusterNames": ["east"]}}
    clusters.manager.patch(Patch("Workload", "default", "w", patches.APPLY, patches.KUEUE, True, alone))
    assert clusters.status("w") == {"nominatedClusterNames": ["east"]}


def test_after_a_round_the_next_cluster_is_nominated_too() -> None:
    clusters = Clusters({"a": 8, "b": 16, "c": 24, "d": 32}, params=DispatchParams(round_s=60, most=3))
    clusters.submit(workload("w"))
    seen = []
    for _ in range(6):
        clusters.dispatcher.turn()
        seen.append(tuple(clusters.status("w")["nominatedClusterNames"]))
        clusters.later(59)
        assert clusters.dispatcher.turn()[0].clusters == seen[-1]
        clusters.later(1)
    assert [len(names) for names in seen] == [1, 2, 3, 3, 3, 3]
    assert all(set(first) <= set(second) for first, second in itertools.pairwise(seen))


def test_a_cluster_that_is_lost_is_replaced_at_once() -> None:
    clusters = Clusters({"a": 8, "b": 8})
    clusters.submit(workload("w"))
    clusters.dispatcher.turn()
    (first,) = clusters.status("w")["nominatedClusterNames"]
    other = {"a": "b", "b": "a"}[first]
    clusters.workers[first].down = "no route to host"
    (decision,) = clusters.dispatcher.turn()
    assert clusters.status("w")["nominatedClusterNames"] == [other]
    assert f"{first}: no route to host" in decision.words
    clusters.manager.create(connected(other, "False"))
    clusters.dispatcher.turn()
    assert "nominatedClusterNames" not in clusters.status("w")


def test_nobody_is_nominated_twice_for_the_same_room() -> None:
    clusters = Clusters({"a": 8, "b": 8})
    for name in ("x", "y", "z"):
        clusters.submit(workload(name))
    clusters.dispatcher.turn()
    named = [clusters.status(name).get("nominatedClusterNames", []) for name in ("x", "y", "z")]
    assert sorted(map(len, named)) == [0, 1, 1]
    assert sorted(itertools.chain(*named)) == ["a", "b"]


def test_shadow_mode_changes_nothing() -> None:
    clusters = Clusters({"east": 8}, check(), check("own", CHECK), shadow=True)
    clusters.submit(workload("w"), "mk", "own")
    before = clusters.manager.version
    decisions = clusters.dispatcher.turn()
    assert [(one.does, one.clusters, one.done) for one in decisions] == [
        ("nominate", ("east",), False),
        ("ready", ("east",), False),
    ]
    assert clusters.manager.version == before
    assert clusters.manager.events == []


def test_an_object_that_has_changed_is_left_for_the_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters({"east": 8})
    clusters.submit(workload("w"))
    world = clusters.dispatcher.look()
    clusters.kueue.reserve("w", "mk")
    monkeypatch.setattr(clusters.dispatcher, "look", lambda: world)
    (decision,) = clusters.dispatcher.turn()
    assert (decision.done, decision.error) == (False, "it has changed meanwhile")
    monkeypatch.undo()
    assert clusters.dispatcher.turn()[0].done


def test_our_own_check_says_why_it_waits_and_passes_when_there_is_room() -> None:
    clusters = Clusters({"east": 8}, check("own", CHECK))
    clusters.workers["east"].create(running("busy"))
    clusters.submit(workload("w"), "own")
    (decision,) = clusters.dispatcher.turn()
    assert (decision.does, decision.done) == ("wait", True)
    (entry,) = clusters.status("w")["admissionChecks"]
    assert entry["state"] == "Pending"
    assert entry["message"].startswith("fits nowhere now; east: ")
    version = clusters.manager.version
    clusters.dispatcher.turn()
    assert clusters.manager.version == version  # the same words are not written again
    assert clusters.manager.get("own", "AdmissionCheck")["status"]["conditions"][0]["type"] == "Active"
    del clusters.workers["east"].objects["Workload", "default", "busy"]
    (decision,) = clusters.dispatcher.turn()
    (entry,) = clusters.status("w")["admissionChecks"]
    assert (decision.does, entry["state"], entry["message"]) == ("ready", "Ready", "east: fits on h100")
    assert clusters.status("w")["conditions"][0]["type"] == "QuotaReserved"


def test_what_is_not_ours_to_decide() -> None:
    clusters = Clusters({"east": 8}, check("other", "example.com/check"), check())
    clusters.submit(workload("other"), "other")
    clusters.manager.create(workload("queued"))
    inactive = workload("inactive")
    inactive["spec"]["active"] = False
    clusters.submit(inactive)
    clusters.submit(workload("done"))
    clusters.dispatcher.turn()
    clusters.kueue.turn()
    assert clusters.status("done")["clusterName"] == "east"
    assert clusters.dispatcher.turn() == []


def test_a_manager_that_is_away_is_waited_for() -> None:
    clusters = Clusters({"east": 8})
    clusters.submit(workload("w"))
    clusters.manager.down = "connection refused"
    with pytest.raises(ApiError, match="refused"):
        clusters.dispatcher.turn()
    stop, seen = threading.Event(), list[Sequence[Decision]]()

    def on_turn(found: Sequence[Decision]) -> None:
        seen.append(found)
        clusters.manager.down = ""
        if found[0].done:
            stop.set()

    clusters.dispatcher.run(stop, on_turn, every_s=0.01)
    assert seen[0][0].error == "connection refused"
    assert seen[-1][0].clusters == ("east",)


@pytest.mark.parametrize("seed", range(4))
def test_random_days(seed: int) -> None:
    """Whatever comes and goes, no worker gives more than it has, and what fits somewhere does not wait for ever."""
    rng = np.random.default_rng(seed)
    gpus = {"a": 24, "b": 40, "c": 8}
    clusters = Clusters(gpus, params=DispatchParams(round_s=30, most=2))
    for number in range(60):
        if number < 40:
            clusters.submit(workload(f"w{number}", pods(int(rng.integers(1, 9)), int(rng.integers(1, 4)))))
        clusters.dispatcher.turn()
        clusters.kueue.turn()
        clusters.later(20)
        for name, api in clusters.workers.items():
            view = cluster_view(name, api.objects.values())
            assert Admission(view).tree.available("cq", ("h100", "nvidia.com/gpu")) >= 0
            gone = [key for key in api.objects if key[0] == "Workload" and rng.random() < 0.3]
            for key in gone:
                if api.objects[key]["status"].get("admission"):
                    del api.objects[key]
                    del clusters.manager.objects[key]
    left = [one for one in clusters.manager.list("Workload") if not one["status"].get("clusterName")]
    assert left == []
