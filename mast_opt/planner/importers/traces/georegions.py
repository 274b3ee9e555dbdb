"""Cloud regions with the GPUs that they offer and the network between them (two CSV files).

``regions.csv``: region, cloud, and hourly prices of GPU machines, empty where a region does not offer them.
``region_pairs.csv``: measured throughput and egress price of every ordered pair of regions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mast_opt.core.units import MICRO
from mast_opt.planner.importers.traces.csv_table import find, read_table
from mast_opt.planner.io.faults import Faults, at
from mast_opt.problems.kind.schema import label, supply

OFFERS = {
    "t4x1_usd_per_hour": "T4",
    "a10gx8_usd_per_hour": "A10G",
    "l4x8_usd_per_hour": "L4",
    "v100x8_usd_per_hour": "V100",
    "a100_40x8_usd_per_hour": "A100-40",
    "a100_80x8_usd_per_hour": "A100-80",
    "h100x8_usd_per_hour": "H100",
}
"""Column with the price → the GPU that the machine has."""
GPUS_OF = {column: int(column.split("_usd")[0].rpartition("x")[2]) for column in OFFERS}
"""Column with the price → GPUs of the machine."""
_PRICE = "price of the machine, empty where it is not offered"

REGION_COLUMNS = (
    label("region", "region", help="name of the region"),
    label("cloud", "cloud", help="its provider"),
    *(supply(column, MICRO, required=False, help=_PRICE) for column in OFFERS),
)
PAIR_COLUMNS = (
    label("src", "region", help="where the data comes from"),
    label("dst", "region", help="where it goes"),
    supply("throughput_gbps", MICRO, help="measured throughput of one machine"),
    supply("egress_usd_per_gb", MICRO, help="price of what leaves src for dst"),
)


@dataclass(frozen=True, eq=False)
class CloudRegions:
    """R regions. Arrays follow the order of ``names``."""

    names: tuple[str, ...]
    clouds: tuple[str, ...]
    offers: dict[str, NDArray[np.bool_]]
    """GPU → [R] whether the region offers it."""
    gbps: NDArray[np.float64]
    """[R, R] throughput of one machine's connection from row to column; 0 on the diagonal."""
    usd_per_tb: NDArray[np.float64]
    """[R, R] egress price."""
    usd_per_gpu_hour: dict[str, NDArray[np.float64]]
    """GPU → [R] price of one for an hour, 0 where the region does not offer it."""

    def subset(self, kept: Sequence[int]) -> "CloudRegions":
        """Only these imported cloud regions, in this order."""
        positions = np.array(kept)
        return CloudRegions(
            tuple(self.names[r] for r in kept),
            tuple(self.clouds[r] for r in kept),
            {gpu: offered[positions] for gpu, offered in self.offers.items()},
            self.gbps[np.ix_(positions, positions)],
            self.usd_per_tb[np.ix_(positions, positions)],
            {gpu: price[positions] for gpu, price in self.usd_per_gpu_hour.items()},
        )

    def with_most_gpus(self, count: int) -> "CloudRegions":
        """The ``count`` regions that offer the most kinds of GPU, ties by name; in order of name."""
        kinds = np.sum(list(self.offers.values()), axis=0)
        order = sorted(range(len(self.names)), key=lambda r: (-kinds[r], self.names[r]))
        return self.subset(sorted(order[:count], key=lambda r: self.names[r]))


def read_regions(folder: Path, faults: Faults) -> CloudRegions | None:
    """The cloud regions in a folder; None, and faults that say why, if they cannot be had."""
    found = find(folder, "regions.csv", faults), find(folder, "region_pairs.csv", faults)
    if found[0] is None or found[1] is None:
        return None
    regions = read_table(found[0], REGION_COLUMNS, faults)
    pairs = read_table(found[1], PAIR_COLUMNS, faults)
    if regions is None or pairs is None:
        return None
    again = np.flatnonzero(~regions.labels["region"].is_first_distinct().to_numpy())
    faults.cells(regions.file, "region", again + 1, at(regions.labels["region"], again), "a region only once")
    if len(again):
        return None
    names = regions.labels["region"].to_list()
    place = {name: r for r, name in enumerate(names)}
    source, target = (
        pairs.labels[end].replace_strict(place, default=None, return_dtype=pl.Int64).fill_null(-1).to_numpy()
        for end in ("src", "dst")
    )
    stated = np.zeros((len(names), len(names)), np.bool_)
    known = (source >= 0) & (target >= 0)
    stated[source[known], target[known]] = True
    np.fill_diagonal(stated, True)
    pair = pl.Series((source * len(names) + target)[known])
    twice = np.flatnonzero(known)[~pair.is_first_distinct().to_numpy()]
    ends = pairs.labels["src"] + " to " + pairs.labels["dst"]
    faults.cells(pairs.file, "src, dst", twice + 1, at(ends, twice), "a pair of regions only once")
    if len(twice):
        return None
    missing = np.argwhere(~stated)
    if len(missing):
        first = " to ".join(names[r] for r in missing[0])
        faults.add(pairs.file, f"a row for every ordered pair of regions; {len(missing)} are missing, first {first}")
        return None

    def matrix(column: str, scale: float) -> NDArray[np.float64]:
        full = np.zeros(stated.shape)
        full[source[known], target[known]] = pairs.numbers[column][known] / MICRO * scale
        return full

    return CloudRegions(
        tuple(names),
        tuple(regions.labels["cloud"].to_list()),
        {gpu: regions.filled[column] for column, gpu in OFFERS.items()},
        matrix("throughput_gbps", 1.0),
        matrix("egress_usd_per_gb", 1000.0),
        {
            gpu: np.where(regions.filled[column], regions.numbers[column], 0) / MICRO / GPUS_OF[column]
            for column, gpu in OFFERS.items()
        },
    )
