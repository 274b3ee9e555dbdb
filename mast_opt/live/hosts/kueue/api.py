"""Interface of an API server, and lightkube, which carries it out (extra ``kueue``)."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol

from mast_opt.core.errors import BackendUnavailable, MastOptError
from mast_opt.core.wording import shown
from mast_opt.live.hosts.kueue.patches import APPLY, CLEARS, Patch
from mast_opt.live.hosts.kueue.reading import GROUP, Object

VERSIONS = ("v1beta2", "v1beta1")
"""Versions of Kueue's API, the preferred one first."""
PLURALS = {
    "Workload": "workloads",
    "AdmissionCheck": "admissionchecks",
    "ClusterQueue": "clusterqueues",
    "Cohort": "cohorts",
    "LocalQueue": "localqueues",
    "ResourceFlavor": "resourceflavors",
    "MultiKueueConfig": "multikueueconfigs",
    "MultiKueueCluster": "multikueueclusters",
}
NAMESPACED = frozenset({"Workload", "LocalQueue"})
Objects = list[dict[str, Any]]
"""Objects as an API server has them, each with its kind."""
TIMEOUT_S = 30.0
WATCH_S = 300
"""Seconds after which a watch is asked for again."""


class ApiError(MastOptError):
    """An API server that refuses, or cannot be reached.

    Args:
        status: of HTTP; 0 if there was no answer.
    """

    code = "kubernetes"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} ({status})" if status else message)
        self.status = status


class KubeApi(Protocol):
    """An API server. Every method raises ApiError."""

    def list(self, kind: str) -> list[dict[str, Any]]:
        """All objects of a kind of Kueue's, as they are stored, each with its kind."""
        ...

    def follow(self, kind: str) -> Iterator[tuple[str, Objects]]:
        """All objects of a kind, with an empty text, and then without end each one that changes, with ``ADDED``,
        ``MODIFIED`` or ``DELETED``."""
        ...

    def patch(self, patch: Patch) -> None:
        """Change the status or the annotations of a Kubernetes object. Status 409: it has changed since it was read."""
        ...

    def clears_nominations(self) -> bool:
        """Whether Kueue clears nominations of others (``patches.CLEARS``)."""
        ...

    def record(self, about: Object, reason: str, message: str, now: str) -> None:
        """Record an Event about an object."""
        ...

    def close(self) -> None:
        """End all connections to the API server; what still waits for an answer or for changes gets an error."""
        ...


class LightkubeApi:
    """API server by way of lightkube.

    Args:
        kubeconfig: a file; None for what ``KUBECONFIG``, the home directory or the pod say.
        context: of the file; None for its current one.
        name: what messages call the cluster.

    Raises:
        BackendUnavailable: lightkube is missing.
        ApiError: there is no such file or context, the server cannot be reached, or it does not know Kueue.
    """

    def __init__(self, kubeconfig: str | None = None, context: str | None = None, *, name: str = "the cluster") -> None:
        try:
            import httpx2
            import lightkube
            from lightkube.core import exceptions
            from lightkube.generic_resource import create_global_resource, create_namespaced_resource
        except ImportError as error:
            raise BackendUnavailable(
                "lightkube is not installed; install it with: pip install 'mast-opt[kueue]'"
            ) from error
        self._name = name
        self._errors = (exceptions.ApiError, httpx2.HTTPStatusError)
        self._trouble = (httpx2.HTTPError, exceptions.ConfigError, OSError, ValueError)
        with self._explained():
            loaded = (
                lightkube.KubeConfig.from_env() if kubeconfig is None else lightkube.KubeConfig.from_file(kubeconfig)
            )
            self._client: Any = lightkube.Client(
                config=loaded.get(context), namespace="default", timeout=httpx2.Timeout(TIMEOUT_S)
            )
        self._make: dict[bool, Callable[..., Any]] = {True: create_namespaced_resource, False: create_global_resource}
        try:
            self._version = self._known_version()
        except ApiError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection to the API server."""
        self._client.close()

    def _known_version(self) -> str:
        """Version of Kueue's API that the server knows. Raises ApiError if it knows none."""
        for version in VERSIONS:
            self._version = version
            try:
                self.list("Workload")
            except ApiError as error:
                if error.status != 404:
                    raise
            else:
                return version
        raise ApiError(404, f"{self._name} does not know Kueue's API ({' or '.join(VERSIONS)}): its CRDs are missing")

    def _resource(self, kind: str) -> Any:  # noqa: ANN401 - a class of lightkube
        """Class of lightkube for a kind of Kueue's objects."""
        return self._make[kind in NAMESPACED](GROUP, self._version, kind, PLURALS[kind])

    def _resource_of(self, patch: Patch) -> tuple[Any, dict[str, str]]:
        """Class of lightkube for the object of a patch, and the head that is to be sent for an object of Kueue's. Jobs
        of any kind are made by their API version; plurals of those that Kueue runs are regular.
        """
        if patch.kind in PLURALS:
            return self._resource(patch.kind), {"apiVersion": f"{GROUP}/{self._version}", "kind": patch.kind}
        group, _, version = str(patch.body["apiVersion"]).rpartition("/")
        return self._make[True](group, version, patch.kind, f"{patch.kind.lower()}s"), {}

    def list(self, kind: str) -> list[dict[str, Any]]:
        """List Kueue's objects of a kind in all namespaces."""
        with closing(self.follow(kind)) as found:
            return next(found)[1]

    def follow(self, kind: str) -> Generator[tuple[str, Objects], None, None]:
        """List the Workloads, or other objects of a kind, and then follow their changes."""
        where = {"namespace": "*"} if kind in NAMESPACED else {}
        head = {"kind": kind, "apiVersion": f"{GROUP}/{self._version}"}
        with self._explained():
            listed = self._client.list(self._resource(kind), chunk_size=500, **where)
            yield "", [{**one.to_dict(), **head} for one in listed]
            since = {"resource_version": listed.resourceVersion, **where}
            for change, one in self._client.watch(self._resource(kind), server_timeout=WATCH_S, **since):
                yield str(change), [{**one.to_dict(), **head}]

    def patch(self, patch: Patch) -> None:
        """Patch the status or the annotations of a Kubernetes object."""
        from lightkube.types import PatchType

        kind = PatchType.APPLY if patch.content_type == APPLY else PatchType.MERGE
        where = {"namespace": patch.namespace} if patch.namespace else {}
        force = {"force": patch.force} if kind is PatchType.APPLY else {}
        resource, head = self._resource_of(patch)
        with self._explained():
            self._client.patch(
                resource.Status if patch.status else resource,
                patch.name,
                {**head, **patch.body},
                patch_type=kind,
                field_manager=patch.manager,
                **force,
                **where,
            )

    def clears_nominations(self) -> bool:
        """Whether a policy of the server clears nominations. False where it has no such policies, or does not let us
        look."""
        for version in ("v1", "v1beta1", "v1alpha1"):
            policy = self._make[False](
                "admissionregistration.k8s.io", version, "MutatingAdmissionPolicy", "mutatingadmissionpolicies"
            )
            try:
                with self._explained():
                    found = list(self._client.list(policy))
            except ApiError:
                continue
            return any(str(one.metadata.name).endswith(CLEARS) for one in found if one.metadata)
        return False

    def record(self, about: Object, reason: str, message: str, now: str) -> None:
        """Record an event about an object."""
        from lightkube.models.core_v1 import ObjectReference
        from lightkube.models.meta_v1 import ObjectMeta
        from lightkube.resources.core_v1 import Event

        meta = about["metadata"]
        space = meta.get("namespace") or "default"
        with self._explained():
            self._client.create(
                Event(
                    metadata=ObjectMeta(generateName=f"{meta['name'][:200]}.", namespace=space),
                    involvedObject=ObjectReference(
                        apiVersion=about["apiVersion"], kind=about["kind"], name=meta["name"], namespace=space,
                        uid=meta.get("uid"),
                    ),
                    reason=reason, message=message[:1000], type="Normal", count=1,
                    reportingComponent="mast-opt.io/dispatcher", reportingInstance="mast-opt",
                ),
                namespace=space,
            )  # fmt: skip

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of lightkube as those of an API server."""
        try:
            yield
        except self._errors as error:
            status = getattr(getattr(error, "status", None), "code", None) or error.response.status_code
            words = {401: "the credentials are not accepted (has the kubeconfig expired?)", 403: "not allowed"}
            said = shown(str(error))[:300]
            raise ApiError(
                int(status), f"{self._name}: {words.get(int(status), '')} {said}".replace("  ", " ")
            ) from error
        except self._trouble as error:
            raise ApiError(0, f"{self._name} cannot be reached: {shown(str(error))[:300]}") from error
