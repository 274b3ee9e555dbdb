"""Names of the limits that a data-placement instance may put on a whole plan."""

from collections.abc import Mapping

from mast_opt.problems.kind.limits import LimitName

LIMITS: Mapping[str, LimitName] = {
    "copied_tb": LimitName("TB", "MB", "data copied to regions that do not hold it today, uploads too"),
    "copy": LimitName("", "MB", "the same as a share of one copy of everything (the term copy)"),
    "stored_tb": LimitName("TB", "MB", "replicas in all regions; outputs are not counted"),
    "storage": LimitName("", "MB", "the same in copies of everything (the term storage)"),
    "remote_tb_per_day": LimitName("TB a day", "MB a day", "what is read from other regions"),
    "remote": LimitName("", "MB a day", "the same as a share of all reads (the term remote)"),
    "egress": LimitName(
        "USD a day", "micro-USD a day", "price of remote reads and copies over links (the term egress)"
    ),
    "running_cost": LimitName("USD a month", "micro-USD a month", "price of GPUs, storage and remote reads (the term)"),
    "migration_cost": LimitName("USD", "micro-USD", "price of all copies, once (the term)"),
    "moved_work": LimitName("", "milli-GPUs", "share of the GPU demand that leaves its region (the term moved_work)"),
    "unserved": LimitName(
        "", "weighted milli-GPUs", "refused share of the demand, by weights of tiers (the term unserved)"
    ),
    "unserved_gpus": LimitName("GPUs", "milli-GPUs", "GPUs of refused work"),
    "overload_gpus": LimitName("GPUs", "milli-GPUs", "GPUs asked for beyond the supply; 0: hard GPU limits"),
    "new_replicas": LimitName("replicas", "replicas", "replicas where there is none today"),
    "moved_workloads": LimitName("workloads", "workloads", "workloads that leave a region, by their shares"),
    "moves": LimitName("moves", "moves", "new replicas and moved workloads together"),
}
"""Limits that ``[limits]`` and ``--limit`` may name."""
