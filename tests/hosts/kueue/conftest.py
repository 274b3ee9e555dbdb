"""Real API servers, one set for all tests, emptied before each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from mast_opt.live.hosts.kueue.api import LightkubeApi
from tests.hosts.kueue.api_servers import ApiServer, Cluster, cluster
from tests.hosts.kueue.real_api import RealApi
from tests.hosts.kueue.stand_in import Kueue
from tests.platforms import APISERVER


@dataclass(frozen=True)
class Servers:
    """A manager, and a worker called east; both know Kueue's kinds."""

    cluster: Cluster
    manager: ApiServer
    east: ApiServer


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    assert APISERVER is not None
    with cluster(tmp_path_factory.mktemp("kubernetes"), APISERVER) as made:
        servers = Servers(made, made.start("manager"), made.start("east"))
        for one in (servers.manager, servers.east):
            one.load_crds()
        yield servers


@pytest.fixture
def servers(started: Servers) -> Servers:
    for one in (started.manager, started.east):
        RealApi(one).clear()
    return started


@dataclass(frozen=True)
class Real:
    """The servers, their objects, and what stands in for Kueue's controllers."""

    servers: Servers
    manager: RealApi
    east: RealApi
    kueue: Kueue

    open: list[LightkubeApi] = field(default_factory=list)

    def api(self, kubeconfig: str, name: str = "the cluster") -> LightkubeApi:
        """As the product uses it."""
        self.open.append(LightkubeApi(kubeconfig, name=name))
        return self.open[-1]

    def apis(self) -> tuple[LightkubeApi, LightkubeApi]:
        """Of manager and worker."""
        manager, east = self.servers.manager.kubeconfig(), self.servers.east.kubeconfig()
        return self.api(manager, "the manager"), self.api(east, "east")


@pytest.fixture
def real(servers: Servers) -> Iterator[Real]:
    manager, east = RealApi(servers.manager), RealApi(servers.east)
    made = Real(servers, manager, east, Kueue(manager, {"east": east}))
    yield made
    for one in made.open:
        one.close()
