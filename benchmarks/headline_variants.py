"""Variants of an organisation: before and after, and with one thing changed at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Variant:
    """One way to run an organisation. What is not listed is as in ``AFTER``."""

    name: str
    says: str
    """Difference from the other variants, in words."""
    policy: str = "mast"
    params: Mapping[str, str] = field(default_factory=dict)
    slow: tuple[str, ...] = ("data",)
    organisation: Mapping[str, Any] = field(default_factory=dict)
    """Changed parameters of the organisation."""
    hours: float = 1.0
    """Factor on the durations of jobs; the demand stays."""
    preemption: bool = True
    limits: bool = False
    """Jobs have round time limits."""
    instant: bool = False
    """Copies take no time."""
    everywhere: bool = False
    """All data is in every region from the start."""
    lost_switchboard: bool = False
    """A switchboard is down for a day in the middle of the window."""


DEFAULTS = {
    "slow.data.keep_origin": "true",
    "slow.data.copies_min": "1",
    "slow.data.storage_weight": "0",
    "slow.data.exact_shares": "false",
    "pack": "always",
}
"""Parameters of variants that do not set them. Of the data plan: replicas stay as long as there is room, data stays
where it appeared, and shares are those of the search, as nothing but replicas is carried out. Of the policy: jobs that
need a part of a server leave whole servers to gangs where there is room elsewhere."""
ARRIVALS = {"slow.data.forecast": "arrivals"}
BINDINGS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("", "", {}),
    ("-early", ", bound as early-share", {"bind": "share"}),
)
"""End of the name, words and parameters of variants that are run with late and with early binding."""
AFTER = Variant("after", "daily data plan (5 h, copies of days), late binding")
BEFORE = Variant(
    "before", "jobs run in their home region, data never moves", params={"bind": "home", "pack": "never"}, slow=()
)
ROOM = Variant(
    "room",
    "smaller jobs make room for gangs that waited half an hour",
    params={"make_room_after_s": "1800", "make_room_of": "all"},
)
VARIANTS: Mapping[str, Variant] = {
    one.name: one
    for one in (
        BEFORE,
        AFTER,
        Variant("before-packed", "as before, parts of servers are packed", params={"bind": "home"}, slow=()),
        Variant("early-share", "bound on arrival by the share that is left", params={"bind": "share"}),
        Variant("early-free", "bound on arrival by the GPUs that are left", params={"bind": "free"}),
        Variant("early-stale", "as early-share, loads are 5 minutes old", params={"bind": "share", "age_s": "300"}),
        Variant("regional", "as before, with the data plan: no scope decoupling", params={"bind": "home"}),
        Variant(
            "copy-on-submission",
            "no plan: bound on arrival, missing data is copied then",
            params={"bind": "copy"},
            slow=(),
        ),
        Variant("no-plan", "late binding, data never moves", slow=()),
        ROOM,
        *(
            replace(ROOM, name=f"room-{name}", says=f"as room, {says}", params={**ROOM.params, **params}, **others)
            for name, says, params, others in (
                ("regional", "but jobs run in their home region", {"bind": "home"}, {}),
                ("no-plan", "but data never moves", {}, {"slow": ()}),
                ("no-preemption", "but nothing less important is stopped", {}, {"preemption": False}),
                ("pack-never", "but parts of servers are not packed", {"pack": "never"}, {}),
                ("early", "but bound on arrival by the share that is left", {"bind": "share"}, {}),
                ("hard", "V0: no plan may exceed GPU supply", {"slow.data.gpu_limit": "hard"}, {}),
                ("arrivals", "but plans are for what comes, not for what waits", ARRIVALS, {}),
                ("soft", "V1: storage of regions does not follow GPUs", {}, {"organisation": {"storage_by": "chance"}}),
                (
                    "servers",
                    "two clusters in each region, servers are assigned every half hour",
                    {},
                    {"slow": ("data", "servers"), "organisation": {"clusters": 2}},
                ),
            )
        ),
        Variant("limits", "jobs have round time limits: reservations know when a job fits", limits=True),
        Variant("limits-pass", "as limits, without reservations", params={"reserve": "false"}, limits=True),
        Variant("hard", "V0: no plan may exceed GPU supply", params={"slow.data.gpu_limit": "hard"}),
        Variant("soft", "V1: storage of regions does not follow GPUs", organisation={"storage_by": "chance"}),
        Variant("instant", "plans and copies take no time", params={"slow.data.takes_s": "0"}, instant=True),
        Variant("frozen-7", "a data plan each seventh day", params={"slow.data.plan_each": "7"}),
        Variant("frozen-30", "one data plan, after a day", params={"slow.data.plan_each": "30"}),
        Variant(
            "two-copies",
            "second copies of what was read, as far as there is room",
            params={"slow.data.copies_min": "2"},
        ),
        Variant("foresight", "demand of the next days is known", params={"slow.data.forecast": "perfect"}),
        Variant("arrivals", "plans are for what comes, not for what waits", params=ARRIVALS),
        *(
            Variant(
                f"error-{name}",
                f"forecasts have lognormal errors of σ {sigma}",
                params={"slow.data.forecast_error": sigma},
            )
            for name, sigma in (("50", "0.5"), ("150", "1.5"))
        ),
        Variant("free-copies", "plans do not weigh what they copy", params={"slow.data.copy_weight": "0"}),
        Variant("no-origins", "data may leave where it appeared", params={"slow.data.keep_origin": "false"}),
        Variant("pack-never", "parts of servers are not packed", params={"pack": "never"}),
        Variant("pack-same", "parts are packed if that stops nothing more important", params={"pack": "same-tier"}),
        Variant("best-fit", "servers are chosen by best fit", params={"placement": "best-fit"}),
        Variant("everywhere", "all data everywhere from the start, nothing planned", slow=(), everywhere=True),
        Variant(
            "everywhere-pack-never",
            "as everywhere, parts of servers are not packed",
            params={"pack": "never"},
            slow=(),
            everywhere=True,
        ),
        Variant("no-preemption", "nothing is stopped", preemption=False),
        *(
            Variant(
                f"storage-{percent}{of}",
                f"storage {percent / 100:g} times one copy{how}",
                params=params,
                organisation={"storage_percent": percent},
            )
            for percent in (110, 150, 200, 250)
            for of, how, params in BINDINGS
        ),
        *(
            Variant(
                f"first-time-{percent}", f"{percent}% first-time work", organisation={"first_time_percent": percent}
            )
            for percent in (0, 30, 95)
        ),
        *(
            Variant(f"{name}{of}", f"jobs {words} as long{how}", params=params, hours=hours)
            for name, words, hours in (("short", "a third", 1 / 3), ("long", "twice", 2.0))
            for of, how, params in BINDINGS
        ),
        Variant("short-pack-never", "short, parts are not packed", params={"pack": "never"}, hours=1 / 3),
        *(
            Variant(f"load-70{of}", f"0.7 of the demand{how}", params=params, organisation={"load": 0.7})
            for of, how, params in BINDINGS
        ),
        Variant(
            "servers",
            "two clusters in each region, servers move",
            slow=("data", "servers"),
            organisation={"clusters": 2},
        ),
        Variant("no-servers", "two clusters in each region, servers stay", organisation={"clusters": 2}),
        Variant(
            "lost-with-servers",
            "as servers, a switchboard is lost for a day",
            slow=("data", "servers"),
            organisation={"clusters": 2},
            lost_switchboard=True,
        ),
        Variant(
            "lost-no-servers",
            "as no-servers, a switchboard is lost for a day",
            organisation={"clusters": 2},
            lost_switchboard=True,
        ),
    )
}
