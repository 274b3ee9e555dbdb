"""Builder of data placement instances."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from mast_opt.core.errors import Fault, InstanceError
from mast_opt.planner.builders.base import Cell, Number, ProblemBuilder, Row, names, pairs
from mast_opt.problems.data_placement.problem import DataPlacement


class DataPlacementBuilder(ProblemBuilder[DataPlacement]):
    """A data placement instance, one region, dataset and workload after another.

    Example::

        from mast_opt import DataPlacementBuilder

        builder = DataPlacementBuilder("two regions")
        builder.add_region("east", storage_tb=100, cpu_cores=1000, gpus={"h100": 64})
        builder.add_region("west", storage_tb=50, cpu_cores=1000, gpus={"h100": 128})
        builder.add_dataset("clicks", size_tb=12, replicas=["east"])
        builder.add_workload("ranker", tier=0, cpu_cores=80, gpus={"h100": 32}, reads={"clicks": 3})
        problem = builder.build()

    Args:
        name: of the instance.
        remote_reads: ``price`` or ``forbid``: may work read data that its region does not hold?
        unserved: ``forbid`` or ``price``: may work be left out?
        days: that the copies may take.
        objective: as in ``[objective]`` of ``instance.toml``, such as ``{"weights": {"peak": 2.0}}``.
        provenance: where the data come from, in words.

    Raises:
        InstanceError: by each method, for a label, number or rule that cannot be; nothing of the call is then taken.
    """

    def __init__(
        self,
        name: str = "instance",
        *,
        remote_reads: str = "price",
        unserved: str = "forbid",
        days: Number = 1,
        objective: Mapping[str, Any] | None = None,
        provenance: str = "",
    ) -> None:
        rules = {"remote_reads": remote_reads, "unserved": unserved, "days": days}
        super().__init__(DataPlacement.kind, name, rules, objective, provenance)

    def add_region(
        self,
        region: str,
        *,
        storage_tb: Number,
        cpu_cores: Number,
        gpus: Mapping[str, Number] | None = None,
        usd_per_gpu_hour: Mapping[str, Number] | None = None,
        **columns: Cell,
    ) -> Self:
        """Add a place with storage, CPUs and GPUs.

        Args:
            gpus: GPU type → GPUs of this type in the region.
            usd_per_gpu_hour: GPU type → price of a GPU for an hour; 0 unless given.
            columns: further columns of the table ``regions``, such as ``headroom=0.1``.
        """
        prices = dict(pairs("usd_per_gpu_hour", usd_per_gpu_hour))
        rows: list[Row] = [("regions", {**columns, "region": region, "storage_tb": storage_tb, "cpu_cores": cpu_cores})]
        for gpu_type, count in pairs("gpus", gpus):
            rows.append(
                (
                    "gpu_supply",
                    {
                        "region": region,
                        "gpu_type": gpu_type,
                        "gpus": count,
                        "usd_per_gpu_hour": prices.pop(gpu_type, None),
                    },
                )
            )
        for gpu_type in prices:
            raise InstanceError(
                [Fault("gpu_supply", f"GPUs of {gpu_type} in {region}, which has a price", column="usd_per_gpu_hour")]
            )
        return self._add(rows)

    def add_dataset(
        self,
        dataset: str,
        *,
        size_tb: Number,
        replicas: Iterable[str] = (),
        pinned: Iterable[str] = (),
        forbidden: Iterable[str] = (),
        residency: Iterable[str] = (),
        **columns: Cell,
    ) -> Self:
        """Add a unit of data that is placed as a whole.

        Args:
            replicas: regions that hold it today.
            pinned, forbidden: regions that must and that must not hold it.
            residency: the only regions that may store and read it; any region unless given.
            columns: further columns of the table ``datasets``, such as ``copies_min=2``.
        """
        rows: list[Row] = [("datasets", {**columns, "dataset": dataset, "size_tb": size_tb})]
        for table, regions in (("replicas", replicas), ("residency", residency)):
            rows += [(table, {"dataset": dataset, "region": region}) for region in names(table, regions)]
        for rule, regions in (("pinned", pinned), ("forbidden", forbidden)):
            rows += [("rules", {"dataset": dataset, "region": one, "rule": rule}) for one in names(rule, regions)]
        return self._add(rows)

    def add_workload(
        self,
        workload: str,
        *,
        tier: int,
        cpu_cores: Number,
        gpus: Mapping[str, Number] | None = None,
        reads: Mapping[str, Number] | None = None,
        current_region: str | None = None,
        current_gpu_type: str | None = None,
        pinned: Iterable[str] = (),
        forbidden: Iterable[str] = (),
        **columns: Cell,
    ) -> Self:
        """Add recurring work that needs CPUs, perhaps GPUs, and datasets.

        Args:
            tier: importance; 0 is the highest.
            cpu_cores: in use on average.
            gpus: each GPU type that it accepts → GPUs that it needs there; nothing for work on CPUs alone.
            reads: dataset → TB read a day.
            current_region, current_gpu_type: where it runs today, as a whole; see ``add_current_run`` for parts.
            pinned, forbidden: regions where it must and where it must not run.
            columns: further columns of the table ``workloads``, such as ``app="ads"`` or ``splittable=True``.
        """
        rows: list[Row] = [("workloads", {**columns, "workload": workload, "tier": tier, "cpu_cores": cpu_cores})]
        for gpu_type, count in pairs("gpus", gpus):
            rows.append(("gpu_demand", {"workload": workload, "gpu_type": gpu_type, "gpus": count}))
        for dataset, amount in pairs("reads", reads):
            rows.append(("reads", {"workload": workload, "dataset": dataset, "tb_per_day": amount}))
        for rule, regions in (("pinned", pinned), ("forbidden", forbidden)):
            labels = names(rule, regions)
            rows += [("workload_rules", {"workload": workload, "region": one, "rule": rule}) for one in labels]
        if current_region is not None or current_gpu_type is not None:
            run = {"workload": workload, "region": current_region, "gpu_type": current_gpu_type}
            rows.append(("current_runs", run))
        return self._add(rows)

    def add_current_run(self, workload: str, region: str, *, gpu_type: str | None = None, share: Number = 1) -> Self:
        """Add a part of a workload that runs in a region today; ``share`` is from 0 to 1."""
        run = {"workload": workload, "region": region, "gpu_type": gpu_type, "share": share}
        return self._add([("current_runs", run)])

    def add_cpu_quota(self, region: str, app: str, *, cpu_cores: Number) -> Self:
        """Add the cores that an application may use in a region."""
        return self._add([("cpu_quota", {"region": region, "app": app, "cpu_cores": cpu_cores})])

    def add_link(self, src: str, dst: str, *, tb_per_day: Number, usd_per_tb: Number | None = None) -> Self:
        """Add a network link; without any link each region reaches each other one freely."""
        return self._add([("links", {"src": src, "dst": dst, "tb_per_day": tb_per_day, "usd_per_tb": usd_per_tb})])
