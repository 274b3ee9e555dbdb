"""``mast-opt warm-up``."""

from __future__ import annotations

from tests.cli.conftest import Call


def test_a_kind_is_warmed_up(call: Call) -> None:
    ended = call("warm-up", "server-assignment", "--json")
    assert ended.code == 0
    (row,) = ended.record["warm_up"]
    assert row["kind"] == "server-assignment"
    assert 0 <= row["seconds"] <= ended.record["runtime_s"]["compile"]
    again = call("warm-up", "server-assignment")
    assert again.code == 0
    assert again.out.startswith("server-assignment was compiled already; loaded in ")
    assert again.err == ""


def test_an_unknown_kind_is_refused_before_anything_is_compiled(call: Call) -> None:
    ended = call("warm-up", "server-assignment", "no-such-kind", "--json")
    assert ended.code == 2
    assert "no-such-kind" in ended.record["error"]
    assert ended.record["runtime_s"]["compile"] == 0


def test_simulations_are_warmed_up(call: Call) -> None:
    ended = call("warm-up", "simulation", "--json")
    assert ended.code == 0
    (row,) = ended.record["warm_up"]
    assert row["kind"] == "simulation"
    assert call("warm-up", "simulation").out.startswith("simulation was compiled already; loaded in ")
