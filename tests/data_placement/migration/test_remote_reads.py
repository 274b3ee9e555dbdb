"""Which replica each region reads from over links that may be full: as much is read as any choice allows."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from mast_opt.problems.data_placement.migration.state import RemoteReads
from tests.examples import examples

HERE = 0
"""The region that reads; the others have links into it."""


def most_read(demand: dict[int, int], held: list[frozenset[int]], room: dict[int, int]) -> int:
    """The largest flow from datasets that the region lacks, over links with so much room."""
    datasets, regions = len(held), max(room, default=0) + 1
    far = {i: volume for i, volume in demand.items() if HERE not in held[i]}
    size = 2 + datasets + regions
    capacity = np.zeros((size, size), np.int32)
    for i, volume in far.items():
        capacity[0, 2 + i] = volume
        for q in held[i] & room.keys():
            capacity[2 + i, 2 + datasets + q] = volume
    for q, left in room.items():
        capacity[2 + datasets + q, 1] = left
    return int(maximum_flow(csr_array(capacity), 0, 1).flow_value)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[int, int], list[dict[int, int]], list[list[frozenset[int]]]]:
    """Links into the region, and two moments: what is read of each dataset, and who holds it."""
    regions, datasets = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    links = draw(st.dictionaries(st.integers(1, regions), st.integers(0, 4), max_size=regions))
    holders = st.frozensets(st.integers(0, regions), min_size=1)
    moments = [draw(st.lists(st.integers(0, 4), min_size=datasets, max_size=datasets)) for _ in range(2)]
    held = [[draw(holders) for _ in range(datasets)] for _ in range(2)]
    return links, [dict(enumerate(volumes)) for volumes in moments], held


def checked(reads: RemoteReads, demand: dict[int, int], held: list[frozenset[int]], room: dict[int, int]) -> None:
    """What is missing is what no choice of sources has room for; no link carries more than it can."""
    wanted = {i: volume for i, volume in demand.items() if volume and HERE not in held[i]}
    assert reads.missing(HERE) == sum(wanted.values()) - most_read(demand, held, room)
    flow = {(i, q): volume for i, sources in reads.flow[HERE].items() for q, volume in sources.items()}
    for i, volume in wanted.items():
        got = sum(amount for (j, _), amount in flow.items() if j == i)
        assert got + reads.short[HERE].get(i, 0) == volume
    for (i, q), amount in flow.items():
        assert amount > 0
        assert i in wanted
        assert q in held[i]
    for q, capacity in room.items():
        over = sum(amount for (_, at), amount in flow.items() if at == q)
        assert over == reads.used[HERE].get(q, 0) <= capacity
        assert reads.spare(q, HERE) == capacity - over


@examples(300)
@given(cases())
def test_what_is_missing_finds_no_way(
    case: tuple[dict[int, int], list[dict[int, int]], list[list[frozenset[int]]]],
) -> None:
    """At first, and after reads and replicas have come and gone."""
    links, demands, held = case
    reads = RemoteReads({(q, HERE): volume for q, volume in links.items()}, lambda i, r, q: (q, r) in reads.link_kb, 1)
    for i, volume in demands[0].items():
        if volume:
            reads.add(i, HERE, volume)
    reads.fit(HERE, demands[0], held[0])
    checked(reads, demands[0], held[0], links)
    event(f"missing: {reads.missing(HERE) > 0}")
    twin, before = reads.copy(), reads.save(HERE)
    for i, volume in demands[1].items():
        if volume != demands[0][i]:
            reads.add(i, HERE, volume - demands[0][i])
    reads.fit(HERE, demands[1], held[1])
    checked(reads, demands[1], held[1], links)
    checked(twin, demands[0], held[0], links)
    reads.restore(HERE, before)
    checked(reads, demands[0], held[0], links)


def test_copies_share_the_links_with_reads() -> None:
    """Dataset 0 is in 1 and 2. The link from 1 carries 5, of which a copy takes 3 today; that from 2 carries 2."""
    held = [frozenset({1, 2})]
    reads = RemoteReads({(1, HERE): 5, (2, HERE): 2}, lambda i, r, q: True, 1)
    reads.copied[1, HERE] = 3
    reads.add(0, HERE, 5)
    reads.fit(HERE, [0], held)
    assert reads.used[HERE] == {1: 2, 2: 2}
    assert reads.missing(HERE) == 1
    assert reads.spare(1, HERE) == reads.spare(2, HERE) == 0


def test_reads_leave_a_link_as_far_as_others_have_room() -> None:
    """Of 4 that are read over the link from 1, the one from 2 can take 3; then there is nothing more to move."""
    held = [frozenset({1, 2})]
    reads = RemoteReads({(1, HERE): 6, (2, HERE): 3}, lambda i, r, q: True, 1)
    reads.add(0, HERE, 4)
    reads.fit(HERE, [0], held)
    assert reads.used[HERE] == {1: 4}
    assert reads.make_room(1, HERE, held)
    assert reads.used[HERE] == {1: 1, 2: 3}
    assert reads.missing(HERE) == 0
    assert not reads.make_room(1, HERE, held)
    assert reads.used[HERE] == {1: 1, 2: 3}


def test_a_read_moves_off_a_full_link_where_another_dataset_has_no_other_way() -> None:
    """0 is in 1 and 2, 1 only in 1. Both fit only if 0 is read from 2."""
    held = [frozenset({1, 2}), frozenset({1})]
    reads = RemoteReads({(1, HERE): 4, (2, HERE): 3}, lambda i, r, q: True, 1)
    reads.add(0, HERE, 3)
    reads.fit(HERE, [0], held)
    assert reads.flow[HERE] == {0: {1: 3}}
    reads.add(1, HERE, 4)
    reads.fit(HERE, [1], held)
    assert reads.flow[HERE] == {0: {2: 3}, 1: {1: 4}}
    assert reads.missing(HERE) == 0
