"""Bodies of events, and bodies that are none."""

from __future__ import annotations

import pytest

from mast_opt.live.store.codec import START, body_of, chained, event_from
from mast_opt.live.store.errors import CorruptStore
from tests.store.logs import log


def test_events_are_read_as_they_were_written() -> None:
    assert len({type(stored.event) for stored in log()}) > 12
    for stored in log():
        kind, _, body = body_of(stored)
        assert event_from((stored.seq, stored.at_ms, 1, kind, body, None)) == stored


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("Timer", '{"name":'),
        ("Timer", '{"name": 3}'),
        ("Timer", "{}"),
        ("Timer", "[]"),
        ("Queued", "[" * 100_000),
    ],
)
def test_other_bodies_are_refused(kind: str, body: str) -> None:
    with pytest.raises(CorruptStore, match="event 5 cannot be read"):
        event_from((5, 0, 1, kind, body, None))


def test_an_event_of_a_later_version_is_said_to_be_one() -> None:
    with pytest.raises(CorruptStore, match="event 5 is a Nothing, which this version does not know: use a later"):
        event_from((5, 0, 1, "Nothing", "{}", None))


def test_the_chain_covers_all_of_an_event() -> None:
    events = [(1, "{}", "ada"), (1, "{}", "eve"), (1, "{}", None), (2, "{}", None), (1, '{"job":"a"}', None)]
    found = {chained(before, at_ms, "Queued", body, by) for at_ms, body, by in events for before in (START, b"1")}
    assert len(found | {chained(START, 1, "Placed", "{}")}) == 11
