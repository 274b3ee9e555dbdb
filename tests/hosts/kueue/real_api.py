"""Objects of a real API server, as the tests make them and as the stand-in for Kueue's controllers changes them."""

from __future__ import annotations

from typing import Any

from mast_opt.live.hosts.kueue.api import NAMESPACED, PLURALS, ApiError
from mast_opt.live.hosts.kueue.patches import APPLY, Patch
from tests.hosts.kueue.api_servers import ApiServer, Refusal
from tests.hosts.kueue.objects import Object

ROOT = "/apis/kueue.x-k8s.io/v1beta2"


def path_of(kind: str, name: str = "", namespace: str = "default") -> str:
    """The path of an object of Kueue, or of all of a kind in a namespace."""
    within = f"/namespaces/{namespace}" if kind in NAMESPACED else ""
    return f"{ROOT}{within}/{PLURALS[kind]}{f'/{name}' if name else ''}"


class RealApi:
    """See ``stand_in.Api``."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Object:
        try:
            return self.server.call(method, path, body, content_type)
        except Refusal as error:
            raise ApiError(error.status, str(error)) from error

    def clear(self) -> None:
        """Delete everything of Kueue's, and Events."""
        self.call("DELETE", "/api/v1/namespaces/default/events")
        for kind in PLURALS:
            self.call("DELETE", path_of(kind))

    def list(self, kind: str) -> list[Object]:
        return [{**one, "kind": kind} for one in self.call("GET", path_of(kind))["items"]]

    def get(self, name: str, kind: str = "Workload") -> Object:
        return self.call("GET", path_of(kind, name))

    def has(self, name: str) -> bool:
        try:
            self.get(name)
        except ApiError:
            return False
        return True

    def create(self, one: Object) -> None:
        self.server.create(one)

    def remove(self, name: str) -> None:
        if self.has(name):
            self.call("DELETE", path_of("Workload", name))

    def patch(self, patch: Patch) -> None:
        part = "/status" if patch.status else ""
        path = f"{path_of(patch.kind, patch.name, patch.namespace)}{part}?fieldManager={patch.manager}"
        if patch.content_type == APPLY:
            path += f"&force={str(patch.force).lower()}"
        self.call("PATCH", path, patch.body, patch.content_type)
