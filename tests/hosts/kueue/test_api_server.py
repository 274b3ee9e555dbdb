"""A real API server with Kueue's CRDs: what it does with our patches, our role, and our credentials.

Kueue's own controllers are not here; a stand-in does what they do, and refuses what their rules in CEL refuse.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing
from typing import Any

import pytest
import yaml

from mast_opt.live.hosts.kueue import patches
from mast_opt.live.hosts.kueue.api import ApiError, LightkubeApi
from mast_opt.live.hosts.kueue.dispatcher import Dispatcher
from mast_opt.live.hosts.kueue.manager_snapshot import CHECK
from mast_opt.live.hosts.kueue.patches import APPLY, KUEUE, MERGE, OURS, Patch
from tests.hosts.kueue.api_servers import bound, collection, crds, until
from tests.hosts.kueue.conftest import Real, Servers
from tests.hosts.kueue.objects import Object, condition, flavor, local_queue, pods, queue, workload
from tests.hosts.kueue.test_dispatcher import check, of_kueue
from tests.platforms import needs
from tests.test_deploy import DEPLOY

pytestmark = needs("kube-apiserver")


def config(*clusters: str) -> Object:
    return of_kueue("MultiKueueConfig", "config", {"clusters": list(clusters)})


def clusters(real: Real, gpus: int = 64) -> None:
    active = {"conditions": [condition("Active")]}
    for one in (check(), config("east"), of_kueue("MultiKueueCluster", "east", SOURCE, **active)):
        real.manager.create(one)
    for one in (queue(gpus=gpus), flavor(), local_queue()):
        real.east.create(one)


SOURCE: Object = {"clusterSource": {"kubeConfig": {"location": "east", "locationType": "Secret"}}}


def submit(real: Real, name: str = "w", *sets: Object, checks: tuple[str, ...] = ("mk",)) -> Object:
    real.manager.create(workload(name, *sets))
    real.kueue.reserve(name, *checks)
    return real.manager.get(name)


def test_all_crds_are_served(servers: Servers) -> None:
    found = servers.manager.call("GET", collection("apiextensions.k8s.io/v1", "CustomResourceDefinition"))["items"]
    names = {one["metadata"]["name"] for one in found}
    assert names == {one["metadata"]["name"] for one in crds()}
    assert len(names) == 11
    for one in found:
        accepted = {part["type"]: part["status"] for part in one["status"]["conditions"]}
        assert (accepted["NamesAccepted"], accepted["Established"]) == ("True", "True")


def test_the_schema_is_checked(real: Real) -> None:
    submit(real)
    with pytest.raises(ApiError) as refused:
        real.manager.patch(
            Patch("Workload", "default", "w", MERGE, OURS, False, {"status": {"nominatedClusterNames": "east"}})
        )
    assert refused.value.status == 422
    many = {"status": {"nominatedClusterNames": [f"c{number}" for number in range(21)]}}
    with pytest.raises(ApiError) as refused:
        real.manager.patch(Patch("Workload", "default", "w", MERGE, OURS, False, many))
    assert refused.value.status == 422


def test_a_workload_is_nominated_copied_and_admitted(real: Real) -> None:
    clusters(real)
    submit(real, "w", pods(8, 2))
    before = real.manager.get("w")["status"]
    manager, east = real.apis()
    (decision,) = Dispatcher(manager, {"east": east}).turn()
    assert (decision.done, decision.error, decision.clusters) == (True, "", ("east",))
    after = real.manager.get("w")
    assert after["status"].pop("nominatedClusterNames") == ["east"]
    assert after["status"] == before
    owners = {one["manager"]: one["operation"] for one in after["metadata"]["managedFields"]}
    assert owners[KUEUE] == "Apply"
    assert OURS not in owners
    real.kueue.turn()
    status = real.manager.get("w")["status"]
    assert status["clusterName"] == "east"
    assert "nominatedClusterNames" not in status
    assert real.east.has("w")
    (event,) = real.servers.manager.call("GET", "/api/v1/namespaces/default/events")["items"]
    assert (event["reason"], event["involvedObject"]["name"]) == ("Nominated", "w")
    real.servers.manager.call("DELETE", "/api/v1/namespaces/default/events")


def test_a_full_copy_is_for_one_version_only(real: Real) -> None:
    found = submit(real)
    real.manager.patch(patches.nomination(found, ["east"], clears=False))
    with pytest.raises(ApiError) as refused:
        real.manager.patch(patches.nomination(found, ["west"], clears=False))
    assert refused.value.status == 409
    assert real.manager.get("w")["status"]["nominatedClusterNames"] == ["east"]


def test_a_field_alone_under_kueues_name_wipes_the_reservation(real: Real) -> None:
    found = submit(real)
    head = {part: found[part] for part in ("apiVersion", "kind")}
    body = {**head, "metadata": {"name": "w"}, "status": {"nominatedClusterNames": ["east"]}}
    real.manager.patch(Patch("Workload", "default", "w", APPLY, KUEUE, True, body))
    assert real.manager.get("w")["status"] == {"nominatedClusterNames": ["east"]}


@pytest.mark.parametrize("content_type", [APPLY, MERGE])
def test_a_nomination_of_our_own_outlives_the_admission(real: Real, content_type: str) -> None:
    """Which the rules of newer API servers refuse; the stand-in has them."""
    clusters(real)
    found = submit(real)
    head = {} if content_type == MERGE else {part: found[part] for part in ("apiVersion", "kind")}
    body: dict[str, Any] = {**head, "metadata": {"name": "w"}, "status": {"nominatedClusterNames": ["east"]}}
    real.manager.patch(Patch("Workload", "default", "w", content_type, OURS, content_type == APPLY, body))
    with pytest.raises(ApiError, match="mutually exclusive"):
        real.kueue.turn()


def test_where_kueue_merges_a_nomination_is_our_own(real: Real) -> None:
    clusters(real)
    status = {**submit(real)["status"]}
    real.manager.remove("w")
    real.manager.create({**workload("w"), "status": status})  # as older versions write it: an Update
    manager, east = real.apis()
    (decision,) = Dispatcher(manager, {"east": east}).turn()
    assert decision.done
    owners = {one["manager"] for one in real.manager.get("w")["metadata"]["managedFields"]}
    assert OURS in owners


def test_the_role_of_the_manifests_is_enough_and_no_more(real: Real) -> None:
    clusters(real)
    real.manager.create(check("own", CHECK))
    submit(real, "w", checks=("mk", "own"))
    role = DEPLOY / "kueue" / "rbac.yaml"
    names = {real.manager: "mast-opt-dispatcher", real.east: "mast-opt-dispatcher-worker"}
    with ExitStack() as bindings:
        for api, name in names.items():
            bindings.enter_context(bound(api.server, role, name))
        config_of = {api: api.server.kubeconfig("mast-opt") for api in names}
        until(lambda: _allowed(config_of[real.manager]) and _allowed(config_of[real.east]))
        manager, east = (real.api(config_of[api]) for api in names)
        decisions = Dispatcher(manager, {"east": east}).turn()
        assert [(one.does, one.done, one.error) for one in decisions] == [("nominate", True, ""), ("ready", True, "")]
        nominated = real.manager.get("w")
        with pytest.raises(ApiError, match="not allowed") as refused:
            east.patch(patches.nomination(nominated, ["east"], clears=False))
        assert refused.value.status == 403
        _refused_spec_patch(config_of[real.manager])


def test_the_manifests_are_accepted(servers: Servers) -> None:
    """As objects of their kinds; nothing runs here that would carry them out. Files of other programs have no kind that
    the server knows."""
    made = servers.cluster.start("manifests")
    try:
        made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
        until(lambda: "items" in made.call("GET", "/api/v1/namespaces/default/configmaps"))
        for path in sorted(DEPLOY.rglob("*.yaml")):
            for one in yaml.safe_load_all(path.read_text()):
                if one.get("kind", "Kustomization") == "Kustomization":
                    continue
                cluster_wide = one["kind"].startswith("Cluster")
                namespace = "" if cluster_wide else one["metadata"].get("namespace", "default")
                made.call("POST", collection(one["apiVersion"], one["kind"], namespace), one)
    finally:
        servers.cluster.stop("manifests")


def _allowed(kubeconfig: str) -> bool:
    try:
        LightkubeApi(kubeconfig).close()
    except ApiError as error:
        if error.status != 403:
            raise
        return False
    return True


def _refused_spec_patch(kubeconfig: str) -> None:
    import lightkube
    from lightkube.core.exceptions import ApiError as LightkubeError
    from lightkube.generic_resource import create_namespaced_resource
    from lightkube.types import PatchType

    kind = create_namespaced_resource("kueue.x-k8s.io", "v1beta2", "Workload", "workloads")
    client: Any = lightkube.Client(config=lightkube.KubeConfig.from_file(kubeconfig).get())
    with client, pytest.raises(LightkubeError) as refused:
        client.patch(kind, "w", {"spec": {"active": False}}, namespace="default", patch_type=PatchType.MERGE)
    assert refused.value.status.code == 403


def test_a_user_without_a_role_is_refused(servers: Servers) -> None:
    with pytest.raises(ApiError, match="not allowed") as refused:
        LightkubeApi(servers.manager.kubeconfig("nobody"))
    assert refused.value.status == 403


def test_an_expired_certificate_is_called_so(servers: Servers) -> None:
    with pytest.raises(ApiError, match="has the kubeconfig expired") as refused:
        LightkubeApi(servers.manager.expired())
    assert refused.value.status == 401


def test_missing_crds_are_called_so(servers: Servers) -> None:
    bare = servers.cluster.start("bare")
    try:
        with pytest.raises(ApiError, match="its CRDs are missing"):
            LightkubeApi(bare.kubeconfig(), name="bare")
    finally:
        servers.cluster.stop("bare")


def test_every_change_is_seen_and_a_cut_does_no_harm(real: Real) -> None:
    """The server goes away under the watch and comes back; what comes then is nominated."""
    clusters(real)
    manager, east = real.apis()
    stop, done, turns = threading.Event(), list[str](), list[str]()

    def on_turn(found: Any) -> None:
        turns.extend(one.error for one in found if one.error)
        done.extend(one.workload for one in found if one.done)

    run = threading.Thread(target=Dispatcher(manager, {"east": east}).run, args=(stop, on_turn, 0.5))
    run.start()
    try:
        submit(real, "first")
        until(lambda: "default/first" in done)
        real.servers.cluster.stop("manager")
        until(lambda: any("cannot be reached" in error for error in turns))
        real.servers.cluster.start("manager")
        submit(real, "second")
        until(lambda: "default/second" in done)
    finally:
        stop.set()
        run.join()


def test_a_version_that_is_forgotten_is_410(real: Real) -> None:
    """Turns look at everything, so a watch that has to start again misses nothing."""
    submit(real)
    manager, _ = real.apis()
    with closing(manager.follow("Workload")) as found:
        assert next(found)[0] == ""
    with pytest.raises(ApiError) as gone, manager._explained():
        next(iter(manager._client.watch(manager._resource("Workload"), namespace="*", resource_version="1")))
    assert gone.value.status == 410
