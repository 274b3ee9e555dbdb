"""Parameters of a generated organisation."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.core.errors import UsageError

TIER_LOADS = (0.95, 0.03, 0.0665, 0.2244, 0.0291)
"""Demand of each tier over supply: 0.98 for the first two, 1.3 for all."""


@dataclass(frozen=True)
class OrganisationParams:
    """Settings of the generator. Published for MAST: the ratio before, the loads, the share of first-time work, the
    region with almost no GPUs. The rest is our own choice.

    Args:
        seed: of every draw.
        days: length of the trace.
        gpus: of all regions, of three types.
        regions: number of regions.
        datasets: partitions of tables; a namespace has eight on average.
        storage_percent: storage of all regions, in percent of one copy of everything.
        storage_by: ``supply``: each region's storage follows its GPUs; ``chance``: Dirichlet.
        first_time_percent: share of the demand that is work that never ran before.
        skew: mean demand of tier 0 over supply in the worst region of each type, where work runs at home.
        load: factor on the demand of every tier.
        median_hours: of a job.
        largest_gpus: of a gang.
        copy_days: days in which all regions together can take in one copy of everything.
        clusters: of each region.
        new_percent: about so many of the partitions appear in the course of the trace, in the home of their namespace.
        ramp_days: first days in which the demand is ``ramp_load`` of what it is later, so that no backlog builds up
            before a data plan can have been carried out.
        ramp_load: see ``ramp_days``.
    """

    seed: int = 1
    days: int = 14
    gpus: int = 2000
    regions: int = 12
    datasets: int = 1600
    storage_percent: int = 225
    storage_by: str = "supply"
    first_time_percent: int = 70
    skew: float = 1.2
    load: float = 1.0
    median_hours: float = 3.0
    largest_gpus: int = 32
    copy_days: float = 4.0
    clusters: int = 1
    new_percent: int = 0
    ramp_days: int = 5
    ramp_load: float = 0.5

    def __post_init__(self) -> None:
        least = {"seed": 0, "days": 1, "gpus": 100, "regions": 2, "datasets": 16, "storage_percent": 100}
        least |= {"largest_gpus": 1, "clusters": 1, "first_time_percent": 0, "ramp_days": 0, "new_percent": 0}
        for name, number in least.items():
            if getattr(self, name) < number:
                raise UsageError(f"{name} of an organisation is {getattr(self, name)}; expected at least {number}")
        for name in ("skew", "load", "median_hours", "copy_days", "ramp_load"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} of an organisation is {getattr(self, name)}; expected more than 0")
        if self.storage_by not in ("supply", "chance"):
            raise UsageError(f"storage_by of an organisation is {self.storage_by!r}; expected supply or chance")
        if self.first_time_percent > 100:
            raise UsageError(
                f"first_time_percent of an organisation is {self.first_time_percent}; expected at most 100"
            )
