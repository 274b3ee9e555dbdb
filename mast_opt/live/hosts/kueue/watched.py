"""An API server whose workloads are kept at hand by a watch: a look costs what has changed, and not what there is."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from mast_opt.live.hosts.kueue.api import ApiError, KubeApi, Objects
from mast_opt.live.hosts.kueue.patches import Patch
from mast_opt.live.hosts.kueue.reading import Object

FOLLOWED = "Workload"
"""The kind that is watched."""
GONE = "DELETED"


class WatchedApi:
    """API server whose objects are kept. Workloads are as the watch has them; where it is interrupted they are asked
    for, as long as it is. Objects of other kinds are asked for again after some time.

    Args:
        api: the server.
        changed: called when a workload has changed, from a thread.
        keep_s: seconds for which objects of other kinds are kept.
        ticks: seconds that never go back.
    """

    def __init__(
        self,
        api: KubeApi,
        changed: Callable[[], None],
        keep_s: float,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._changed, self._keep_s, self._ticks = api, changed, keep_s, ticks
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._objects: dict[tuple[str, str], dict[str, Any]] | None = None
        """None while the watch does not know them all."""
        self._others: dict[str, tuple[float, list[dict[str, Any]]]] = {}

    def follow_on(self) -> None:
        """Watch the API server until ``close``, in this thread."""
        while not self._stop.is_set():
            try:
                for kind, found in self._api.follow(FOLLOWED):
                    if self._stop.is_set():
                        return
                    self._take(kind, found)
                    self._changed()
            except ApiError:
                with self._lock:
                    self._objects = None
                self._changed()
                self._stop.wait(self._keep_s)

    def _take(self, kind: str, found: list[dict[str, Any]]) -> None:
        """Take in the objects of a watch: all of them, changes, or deletions."""
        with self._lock:
            if kind == "":
                self._objects = {_key(one): one for one in found}
                return
            assert self._objects is not None  # all of them came first
            for one in found:
                if kind == GONE:
                    self._objects.pop(_key(one), None)
                else:
                    self._objects[_key(one)] = one

    def list(self, kind: str) -> list[dict[str, Any]]:
        """List the objects of a kind, as the watch keeps them."""
        if kind == FOLLOWED:
            with self._lock:
                if self._objects is not None:
                    return list(self._objects.values())
            return self._api.list(kind)
        now, kept = self._ticks(), self._others.get(kind)
        if kept is None or now - kept[0] >= self._keep_s:
            kept = self._others[kind] = now, self._api.list(kind)
        return kept[1]

    def follow(self, kind: str) -> Iterator[tuple[str, Objects]]:
        """List the objects of a kind, and then follow their changes."""
        return self._api.follow(kind)

    def patch(self, patch: Patch) -> None:
        """Patch the status or the annotations of a Kubernetes object."""
        self._api.patch(patch)

    def clears_nominations(self) -> bool:
        """Whether a policy of the server clears nominations."""
        return self._api.clears_nominations()

    def record(self, about: Object, reason: str, message: str, now: str) -> None:
        """Record an event about an object."""
        self._api.record(about, reason, message, now)

    def close(self) -> None:
        """Stop the watch, and close the connection to the API server."""
        self._stop.set()
        self._api.close()


def _key(one: Object) -> tuple[str, str]:
    """Namespace and name of a Kubernetes object."""
    return str(one["metadata"].get("namespace", "")), str(one["metadata"]["name"])
