"""When a refused job fits into a live fleet at the latest, by limits and starts that the caller states."""

from __future__ import annotations

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement.live_fleet.fits_by import FitsBy
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Job, Part, Share
from tests.job_placement.fleets import bid_for, server

WHOLE = {0: 1000, 1: 1000}


def two_servers() -> Fleet:
    """``old`` has ``a`` from 100 to 1,100 at the latest, ``new`` has ``b`` from 300 to 800."""
    fleet = Fleet([server("a"), server("b")], tiers=(0, 1), replicas={"d": {"south"}})
    fleet.adopt(Job("old", 0, mgpu=2000, limit_ms=1000), (Share("a", 1, WHOLE),), started_ms=100)
    fleet.commit(bid_for(fleet, Job("new", 0, mgpu=2000, limit_ms=500)), started_ms=300)
    return fleet


def test_a_job_fits_when_enough_has_ended() -> None:
    fleet, one, both = two_servers(), Job("one", 1, mgpu=2000), Job("both", 1, tasks=2, mgpu=2000)
    assert fleet.fits_by(one, 400) == FitsBy("north", 800, ("b",))
    assert fleet.fits_by(both, 400) == FitsBy("north", 1100, ("a", "b"))
    fleet.release("new")
    assert fleet.fits_by(one, 400) == FitsBy("north", 400, ("b",))
    assert fleet.fits_by(Job("elsewhere", 1, datasets=("d",)), 400) is None


def test_work_past_its_limit_is_taken_to_run_for_another() -> None:
    assert two_servers().fits_by(Job("one", 1, mgpu=2000), 1_200) == FitsBy("north", 1300, ("b",))


def test_nothing_is_said_where_limits_or_starts_are_not_known() -> None:
    for limit_ms, started_ms in ((None, 5), (10, None)):
        fleet = Fleet([server("a")], tiers=(0, 1))
        answer = fleet.place_and_commit(Job("x", 0, mgpu=2000, limit_ms=limit_ms), started_ms=started_ms)
        assert answer.job.name == "x"
        assert fleet.fits_by(Job("one", 1), 7) is None


def test_parts_fit_when_there_is_room_for_all() -> None:
    """Two parts of one GPU fit on ``b`` when ``new`` has ended; a larger one needs ``a`` too. Nothing is kept."""
    fleet = two_servers()
    before = fleet.snapshot_bytes()
    small, large = Part("a", mgpu=1000), Part("b", mgpu=2000)
    assert fleet.fits_by(Job("x", 1, parts=(small, Part("c", mgpu=1000))), 400) == FitsBy("north", 800, ("b",))
    found = fleet.fits_by(Job("x", 1, parts=(small, large)), 400)
    assert found is not None
    assert (found.by_ms, {*found.servers}) == (1100, {"a", "b"})
    assert fleet.fits_by(Job("x", 0, parts=(small, Part("d", tasks=4, mgpu=1000))), 400) is None
    assert fleet.fits_by(Job("x", 1, parts=(small, large), datasets=("d",)), 400) is None
    assert fleet.snapshot_bytes() == before
    fleet.release("old")
    fleet.commit(bid_for(fleet, Job("endless", 0, mgpu=2000)))
    assert fleet.fits_by(Job("x", 1, parts=(small, large)), 400) is None


def test_what_may_be_stopped_is_not_waited_for() -> None:
    fleet = Fleet([server("a")], tiers=(0, 1))
    fleet.commit(bid_for(fleet, Job("x", 1, mgpu=2000, preemptible=True)))
    assert fleet.fits_by(Job("urgent", 0), 7) == FitsBy("north", 7, ("a",))
    assert fleet.fits_by(Job("equal", 1), 7) is None


def test_limits_and_starts_survive_reports_changes_and_restarts() -> None:
    fleet = two_servers()
    fleet.adopt(Job("new", 0, mgpu=2000, limit_ms=600), (Share("b", 1, WHOLE),))
    fleet.set_at_risk({"new": 3.0})
    again = Fleet.from_bytes(fleet.snapshot_bytes())
    for one in (fleet, again):
        assert one.fits_by(Job("one", 1, mgpu=2000), 400) == FitsBy("north", 900, ("b",))


def test_what_cannot_be_answered() -> None:
    fleet = two_servers()
    with pytest.raises(UsageError, match="no region called south"):
        fleet.fits_by(Job("x", 1), 400, regions=["south"])
    with pytest.raises(UsageError, match="limit_ms is 0"):
        Job("x", 0, limit_ms=0)
    with pytest.raises(UsageError, match="started_ms is -1"):
        fleet.commit(bid_for(Fleet([server("c")]), Job("x", 0)), started_ms=-1)
