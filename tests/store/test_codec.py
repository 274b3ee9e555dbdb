"""Bodies of events: both ways of writing and reading them, and bodies that are none."""

from __future__ import annotations

import pytest

from mast_opt.live.store import codec
from mast_opt.live.store.codec import START, body_of, chained, event_from
from mast_opt.live.store.errors import CorruptStore
from tests.store.logs import log


@pytest.mark.parametrize("writes", ["quick", "plain"])
@pytest.mark.parametrize("reads", ["quick", "plain"])
def test_each_way_reads_what_the_other_writes(writes: str, reads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({type(stored.event) for stored in log()}) > 12
    if writes == "plain":
        monkeypatch.setattr(codec, "msgspec", None)
    rows = [(stored.seq, stored.at_ms, 1, *(body_of(stored)[at] for at in (0, 2)), None) for stored in log()]
    monkeypatch.undo()
    if reads == "plain":
        monkeypatch.setattr(codec, "msgspec", None)
    assert [event_from(row) for row in rows] == list(log())  # type: ignore[arg-type]


@pytest.mark.parametrize("quick", [True, False])
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
def test_other_bodies_are_refused(kind: str, body: str, quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not quick:
        monkeypatch.setattr(codec, "msgspec", None)
    with pytest.raises(CorruptStore, match="event 5 cannot be read"):
        event_from((5, 0, 1, kind, body, None))


@pytest.mark.parametrize("quick", [True, False])
def test_an_event_of_a_later_version_is_said_to_be_one(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not quick:
        monkeypatch.setattr(codec, "msgspec", None)
    with pytest.raises(CorruptStore, match="event 5 is a Nothing, which this version does not know: use a later"):
        event_from((5, 0, 1, "Nothing", "{}", None))


def test_the_chain_covers_all_of_an_event() -> None:
    events = [(1, "{}", "ada"), (1, "{}", "eve"), (1, "{}", None), (2, "{}", None), (1, '{"job":"a"}', None)]
    found = {chained(before, at_ms, "Queued", body, by) for at_ms, body, by in events for before in (START, b"1")}
    assert len(found | {chained(START, 1, "Placed", "{}")}) == 11
