"""Fields that are read of public traces and of benchmark files."""

from collections.abc import Sequence

from mast_opt.planner.importers.fields import Field, Format, Use, of_columns
from mast_opt.planner.importers.traces import alibaba, georegions, philly
from mast_opt.problems.kind.schema import Column


def _no_memory(columns: Sequence[Column]) -> tuple[Field, ...]:
    """Fields of Alibaba's columns without that of memory."""
    return of_columns([column for column in columns if column.name != alibaba.MEMORY])


NODES_2023 = Format("Alibaba, openb_node_list_all_node.csv", of_columns(alibaba.NODE_COLUMNS), Use.IGNORED)
NODES_2026 = Format("Alibaba, node_info_df.csv", of_columns(alibaba.NODE_COLUMNS_2026), Use.IGNORED)
PODS = Format("Alibaba, openb_pod_list_*.csv", of_columns(alibaba.POD_COLUMNS), Use.IGNORED)
PHILLY = Format("Philly, philly.csv", of_columns(philly.COLUMNS), Use.IGNORED)
CLOUD_REGIONS = (
    Format("georegions, regions.csv", of_columns(georegions.REGION_COLUMNS), Use.IGNORED),
    Format("georegions, region_pairs.csv", of_columns(georegions.PAIR_COLUMNS), Use.IGNORED),
    Format("Alibaba, openb_node_list_all_node.csv", _no_memory(alibaba.NODE_COLUMNS), Use.IGNORED),
    Format("Alibaba, openb_pod_list_*.csv", _no_memory(alibaba.POD_COLUMNS), Use.IGNORED),
    PHILLY,
)
GPU_FLEET = (NODES_2023, NODES_2026, PODS, PHILLY)


def whole(title: str, **parts: str) -> Format:
    """An imported format of which everything is read, in this order; anything else is refused."""
    fields = tuple(Field(name.replace("_", " "), Use.READ, help) for name, help in parts.items())
    return Format(title, fields, Use.REFUSED)
