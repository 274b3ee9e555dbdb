"""Instances whose rows a test adds one after another, with the rows of related tables in the same call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, Self

import mast_opt
from mast_opt.problems.kind.problem import ProblemT


class _Rows(Generic[ProblemT]):
    """Rows of tables that are added one call after another; None is an empty cell."""

    kind: Any

    def __init__(
        self,
        name: str = "instance",
        *,
        objective: Mapping[str, Any] | None = None,
        provenance: str = "",
        **rules: object,
    ) -> None:
        self._header: dict[str, Any] = {"name": name, "objective": objective, "rules": rules, "provenance": provenance}
        self._rows: dict[str, list[Mapping[str, Any]]] = {name: [] for name in self.required}

    required: tuple[str, ...] = ()

    def _add(self, table: str, *rows: Mapping[str, Any]) -> Self:
        if rows:
            self._rows.setdefault(table, []).extend(rows)
        return self

    def build(self) -> ProblemT:
        """The problem of the rows added so far."""
        problem: ProblemT = mast_opt.from_tables(self.kind, self._rows, **self._header)
        return problem


class DataRows(_Rows[mast_opt.DataPlacement]):
    """Rows of a data placement instance."""

    kind = "data-placement"
    required = ("regions", "gpu_supply", "datasets", "replicas", "workloads", "gpu_demand", "reads")

    def add_region(
        self,
        region: str,
        gpus: Mapping[str, Any] | None = None,
        usd_per_gpu_hour: Mapping[str, Any] | None = None,
        **cells: Any,
    ) -> Self:
        prices = usd_per_gpu_hour or {}
        supply = [
            {"region": region, "gpu_type": kind, "gpus": count, "usd_per_gpu_hour": prices.get(kind)}
            for kind, count in (gpus or {}).items()
        ]
        return self._add("regions", {"region": region, **cells})._add("gpu_supply", *supply)

    def add_dataset(
        self,
        dataset: str,
        replicas: Iterable[str] = (),
        pinned: Iterable[str] = (),
        forbidden: Iterable[str] = (),
        residency: Iterable[str] = (),
        **cells: Any,
    ) -> Self:
        self._add("datasets", {"dataset": dataset, **cells})
        for table, regions in (("replicas", replicas), ("residency", residency)):
            self._add(table, *({"dataset": dataset, "region": region} for region in regions))
        for rule, regions in (("pinned", pinned), ("forbidden", forbidden)):
            self._add("rules", *({"dataset": dataset, "region": region, "rule": rule} for region in regions))
        return self

    def add_workload(
        self,
        workload: str,
        gpus: Mapping[str, Any] | None = None,
        reads: Mapping[str, Any] | None = None,
        current_region: str | None = None,
        current_gpu_type: str | None = None,
        pinned: Iterable[str] = (),
        forbidden: Iterable[str] = (),
        **cells: Any,
    ) -> Self:
        self._add("workloads", {"workload": workload, **cells})
        for kind, count in (gpus or {}).items():
            self._add("gpu_demand", {"workload": workload, "gpu_type": kind, "gpus": count})
        for dataset, amount in (reads or {}).items():
            self._add("reads", {"workload": workload, "dataset": dataset, "tb_per_day": amount})
        for rule, regions in (("pinned", pinned), ("forbidden", forbidden)):
            self._add("workload_rules", *({"workload": workload, "region": one, "rule": rule} for one in regions))
        if current_region is not None:
            self.add_current_run(workload, current_region, gpu_type=current_gpu_type)
        return self

    def add_current_run(self, workload: str, region: str, *, gpu_type: str | None = None, share: float = 1) -> Self:
        run = {"workload": workload, "region": region, "gpu_type": gpu_type, "share": share}
        return self._add("current_runs", run)

    def add_link(self, src: str, dst: str, **cells: Any) -> Self:
        return self._add("links", {"src": src, "dst": dst, **cells})


class JobRows(_Rows[mast_opt.JobPlacement]):
    """Rows of a job placement instance."""

    kind = "job-placement"
    required = (
        "regions",
        "clusters",
        "servers",
        "jobs",
        "job_gpu_types",
        "job_datasets",
        "replicas",
        "running",
        "allocations",
    )

    def add_region(self, region: str) -> Self:
        return self._add("regions", {"region": region})

    def add_cluster(self, cluster: str, *, region: str) -> Self:
        if all(row["region"] != region for row in self._rows["regions"]):
            self.add_region(region)
        return self._add("clusters", {"cluster": cluster, "region": region})

    def add_server(self, server: str, cluster: str, *, rack: str = "rack", **cells: Any) -> Self:
        return self._add("servers", {"server": server, "cluster": cluster, "rack": rack, "gpu_type": None, **cells})

    def add_dataset(self, dataset: str, *, replicas: Iterable[str], residency: Iterable[str] = ()) -> Self:
        for table, regions in (("replicas", replicas), ("residency", residency)):
            self._add(table, *({"dataset": dataset, "region": region} for region in regions))
        return self

    def add_job(
        self,
        job: str,
        gpu_types: Iterable[str] | Mapping[str, Any] = (),
        datasets: Mapping[str, Any] | None = None,
        costs: Mapping[str, Any] | None = None,
        **cells: Any,
    ) -> Self:
        needs = {"tasks": None, "gpus": None, "cpu_cores": None, "memory_gb": None}
        self._add("jobs", {"job": job, **needs, **cells})._accepts(gpu_types, job=job)
        for dataset, amount in (datasets or {}).items():
            self._add("job_datasets", {"job": job, "dataset": dataset, "tb_per_day": amount})
        for cluster, cost in (costs or {}).items():
            self._add("costs", {"job": job, "cluster": cluster, "cost": cost})
        return self

    def add_job_part(
        self, job: str, part: str, gpu_types: Iterable[str] | Mapping[str, Any] = (), **cells: Any
    ) -> Self:
        return self._add("job_parts", {"job": job, "part": part, **cells})._accepts(gpu_types, job=job, part=part)

    def _accepts(self, gpu_types: Iterable[str] | Mapping[str, Any], **named: str) -> Self:
        accepted = gpu_types if isinstance(gpu_types, Mapping) else dict.fromkeys(gpu_types)
        return self._add(
            "job_gpu_types", *({**named, "gpu_type": kind, "gpus": count} for kind, count in accepted.items())
        )

    def add_running(self, job: str, **cells: Any) -> Self:
        return self._add("running", {"job": job, **cells})

    def add_allocation(self, job: str, server: str, *, tasks: int = 1, **cells: Any) -> Self:
        return self._add("allocations", {"job": job, "server": server, "tasks": tasks, **cells})

    def add_movable(self, job: str, *, restart_gpu_hours: float) -> Self:
        return self._add("movable", {"job": job, "restart_gpu_hours": restart_gpu_hours})

    def add_quota(self, tenant: str, **cells: Any) -> Self:
        return self._add("quotas", {"tenant": tenant, **cells})


class ServerRows(_Rows[mast_opt.ServerAssignment]):
    """Rows of a server assignment instance."""

    kind = "server-assignment"
    required = ("servers", "reservations", "values")

    def add_reservation(
        self, reservation: str, *, values: Mapping[str, Any], affinity: Mapping[str, Any] | None = None, **cells: Any
    ) -> Self:
        self._add("reservations", {"reservation": reservation, **cells})
        for kind, worth in values.items():
            self._add("values", {"reservation": reservation, "type": kind, "rru": worth})
        for datacenter, (share, tolerance) in (affinity or {}).items():
            row = {"reservation": reservation, "datacenter": datacenter, "share": share, "tolerance": tolerance}
            self._add("affinity", row)
        return self

    def add_server(self, server: str, *, rack: str = "rack", **cells: Any) -> Self:
        return self._add("servers", {"server": server, "rack": rack, "reservation": None, "in_use": False, **cells})
