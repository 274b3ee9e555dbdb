"""lightkube against the stand-in over HTTP: the same nominations, and errors with their causes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mast_opt.live.hosts.kueue.api import ApiError, LightkubeApi
from mast_opt.live.hosts.kueue.dispatcher import Dispatcher
from tests.hosts.kueue.http_stand_in import served
from tests.hosts.kueue.objects import pods, running, workload
from tests.hosts.kueue.test_dispatcher import Clusters


def test_a_workload_is_nominated_and_admitted(tmp_path: Path) -> None:
    clusters = Clusters({"east": 8, "west": 64})
    clusters.workers["east"].create(running("busy"))
    clusters.submit(workload("w", pods(8, 2)))
    with (
        served(clusters.manager, tmp_path) as manager,
        served(clusters.workers["east"], tmp_path) as east,
        served(clusters.workers["west"], tmp_path) as west,
    ):
        api = LightkubeApi(manager)
        workers = {"east": LightkubeApi(east), "west": LightkubeApi(west)}
        dispatcher = Dispatcher(api, workers)
        (decision,) = dispatcher.turn()
        assert (decision.done, decision.error) == (True, "")
        with closing(api.follow("Workload")) as found:
            assert [next(found)[0], next(found)[0]] == ["", "MODIFIED"]
    assert clusters.status("w")["nominatedClusterNames"] == ["west"]
    assert clusters.manager.events[0][:2] == ("w", "Nominated")
    clusters.kueue.turn()
    assert clusters.status("w")["clusterName"] == "west"


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    clusters = Clusters({"east": 8})
    clusters.submit(workload("w"))
    with served(clusters.manager, tmp_path, crds=False) as path, pytest.raises(ApiError, match="its CRDs are missing"):
        LightkubeApi(path)
    with (
        served(clusters.manager, tmp_path, token="old") as path,
        pytest.raises(ApiError, match="has the kubeconfig expired") as refused,
    ):
        LightkubeApi(path)
    assert refused.value.status == 401
    with served(clusters.manager, tmp_path) as path:
        pass
    with pytest.raises(ApiError, match="cannot be reached"):
        LightkubeApi(path)
    for wrong in ("none", str(tmp_path)):
        with pytest.raises(ApiError, match="cannot be reached"):
            LightkubeApi(wrong)
    with served(clusters.manager, tmp_path) as path, pytest.raises(ApiError, match="cannot be reached"):
        LightkubeApi(path, context="other")


def test_a_stale_object_is_a_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters({"east": 8})
    clusters.submit(workload("w"))
    with served(clusters.manager, tmp_path) as path:
        dispatcher = Dispatcher(LightkubeApi(path), clusters.workers)
        world = dispatcher.look()
        clusters.kueue.reserve("w", "mk")
        monkeypatch.setattr(dispatcher, "look", lambda: world)
        assert dispatcher.turn()[0].error == "it has changed meanwhile"
