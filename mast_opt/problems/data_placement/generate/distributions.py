"""Random distributions of generated data-placement instances, vectorised. Every function takes the generator first.

Amounts are integers in base units and coarse on purpose (whole GB, tenths of a core, whole GPUs), so that the
files stay short.
"""

import numpy as np
from numpy.typing import NDArray

from mast_opt.problems.data_placement.problem import Bools, Ints

GB = 1000
"""MB per GB."""
GPU = 1000
"""Milli-GPUs per GPU."""
DECICORE = 100
"""Millicores per tenth of a core."""
MEDIAN_SIZE_MB = 10_000_000
MEDIAN_CPU_MCORES = 32_000

READERS_AT = (0.0, 0.5, 0.9, 0.99, 1.0)
READERS = (1, 3, 17, 45, 100)
"""Readers per dataset at the shares ``READERS_AT`` of all datasets: the published P50, P90 and P99, and endpoints that
we chose."""
MOST_READERS = 4
"""A dataset has at most ``workloads // MOST_READERS`` readers, but at least 1."""

ONE_BY_ONE = 4096
"""Number of the largest items that are settled individually; the rest are settled all at once."""


def lognormal(rng: np.random.Generator, count: int, *, median: int, sigma: float, step: int) -> Ints:
    """[count] lognormal amounts of a generated data placement, rounded up to a multiple of ``step``."""
    drawn = rng.lognormal(np.log(median), sigma, count)
    return np.ceil(drawn / step).astype(np.int64) * step


def reader_counts(rng: np.random.Generator, datasets: int, workloads: int) -> Ints:
    """[datasets] how many workloads read each: log-linear between the published quantiles."""
    drawn = np.exp(np.interp(rng.random(datasets), READERS_AT, np.log(READERS)))
    return np.minimum(np.rint(drawn).astype(np.int64), max(1, workloads // MOST_READERS))


def distinct_readers(rng: np.random.Generator, counts: Ints, workloads: int) -> tuple[Ints, Ints]:
    """(workload, dataset) of every read, sorted: dataset i has counts[i] readers, drawn without replacement and
    with equal chances. ``counts`` must stay well below ``workloads``: collisions are drawn again."""
    dataset = np.repeat(np.arange(len(counts)), counts)
    key = np.sort(dataset * workloads + rng.integers(workloads, size=len(dataset)))
    while True:
        again = np.flatnonzero(key[1:] == key[:-1]) + 1
        if not len(again):
            break
        key[again] += rng.integers(workloads, size=len(again)) - key[again] % workloads
        key.sort()
    return by_workload(key % workloads, key // workloads, len(counts))


def by_workload(workload: Ints, dataset: Ints, datasets: int) -> tuple[Ints, Ints]:
    """The reads, each once, sorted by workload and then dataset."""
    key = np.sort(workload * datasets + dataset)
    if len(key):
        key = key[np.concatenate([[True], key[1:] != key[:-1]])]
    return key // datasets, key % datasets


def read_volumes(rng: np.random.Generator, size_mb: Ints) -> Ints:
    """MB a day of reads of datasets of these sizes: on average half of the dataset, exponentially distributed
    (most reads want a recent part, some want everything several times)."""
    return np.ceil(size_mb * rng.exponential(0.5, len(size_mb)) / GB).astype(np.int64) * GB


def powers_of_two(rng: np.random.Generator, count: int, largest: int) -> Ints:
    """[count] GPUs of generated work, of 1, 2, 4 … ``largest``, all equally likely."""
    return np.left_shift(1, rng.integers(largest.bit_length(), size=count))


def pareto_powers_of_two(rng: np.random.Generator, count: int, largest: int, index: float) -> Ints:
    """[count] GPUs of generated work, of 1, 2, 4 … ``largest`` with P(at least g) = g^−index, cut off at
    the largest.
    """
    steps = np.floor(-np.log2(1.0 - rng.random(count)) / index)
    return np.left_shift(1, np.minimum(steps, largest.bit_length() - 1).astype(np.int64))


def dirichlet(rng: np.random.Generator, alpha: float, parts: int, total: int, step: int = 1) -> Ints:
    """[parts] parts of a generated region's total, in multiples of ``step``, shared out by a symmetric Dirichlet; adds
    up to the total rounded up to ``step``.
    """
    return shared_out(-(-total // step), rng.dirichlet(np.full(parts, alpha))) * step


def shared_out(total: int, shares: NDArray[np.float64]) -> Ints:
    """[·] whole amounts of generated regions that add up to ``total``, each within 1 of its share."""
    edges = np.floor(np.cumsum(shares / shares.sum()) * total + 0.5).astype(np.int64)
    edges[-1] = total
    return np.diff(edges, prepend=0)


def settle(rng: np.random.Generator, amount: Ints, capacity: Ints, allowed: Bools, pattern: Ints) -> tuple[Ints, Ints]:
    """Draw a region for every generated dataset or workload, with probability proportional to the room left.

    The largest items come first, individually; the rest are drawn at once.

    Args:
        amount: [n] size of each item, in the unit of ``capacity``.
        capacity: [R] capacity of each region.
        allowed: [patterns, R] sets of regions in which items may be.
        pattern: [n] the set of each item.

    Returns:
        Homes [n] and capacities [R], which are raised only where an item fitted nowhere (in very small instances).
    """
    order = np.argsort(-amount, kind="stable")
    home = np.zeros(len(amount), np.int64)
    room = capacity.astype(np.float64)
    chance = rng.random(len(amount))
    for item in order[:ONE_BY_ONE].tolist():
        may = allowed[pattern[item]]
        weight = np.where(may & (room >= amount[item]), room + 1, 0.0)
        if weight.any():
            edges = np.cumsum(weight)
            region = int(np.searchsorted(edges, chance[item] * edges[-1], side="right"))
        else:
            region = int(np.argmax(np.where(may, room, -np.inf)))
        home[item] = region
        room[region] -= amount[item]
    rest = order[ONE_BY_ONE:]
    for kind in np.unique(pattern[rest]).tolist():
        items = rest[pattern[rest] == kind]
        edges = np.cumsum(np.where(allowed[kind], np.maximum(room, 0) + 1, 0.0))
        home[items] = np.searchsorted(edges, chance[items] * edges[-1], side="right")
    return home, np.maximum(capacity, used(amount, home, len(capacity)))


def used(amount: Ints, home: Ints, regions: int) -> Ints:
    """[R] sum of the amounts of the generated datasets or workloads in each region."""
    return np.rint(np.bincount(home, weights=amount, minlength=regions)).astype(np.int64)


def names(prefix: str, count: int) -> tuple[str, ...]:
    """Labels of generated regions or datasets, of one width, so that they sort as they are numbered."""
    width = len(str(count - 1))
    return tuple(f"{prefix}{n:0{width}d}" for n in range(count))
