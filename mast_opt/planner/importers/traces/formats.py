"""Fields that are read of public traces and of benchmark files."""

from __future__ import annotations

from mast_opt.planner.importers.fields import Field, Format, Use, of_columns
from mast_opt.planner.importers.traces import alibaba_nodes, alibaba_openb, alibaba_pods, georegions, philly

NODES_2023 = Format("Alibaba, openb_node_list_all_node.csv", of_columns(alibaba_nodes.COLUMNS_2023), Use.IGNORED)
NODES_2026 = Format("Alibaba, node_info_df.csv", of_columns(alibaba_nodes.COLUMNS_2026), Use.IGNORED)
PODS = Format("Alibaba, openb_pod_list_*.csv", of_columns(alibaba_pods.COLUMNS), Use.IGNORED)
PHILLY = Format("Philly, philly.csv", of_columns(philly.COLUMNS), Use.IGNORED)
CLOUD_REGIONS = (
    Format("georegions, regions.csv", of_columns(georegions.REGION_COLUMNS), Use.IGNORED),
    Format("georegions, region_pairs.csv", of_columns(georegions.PAIR_COLUMNS), Use.IGNORED),
    Format("Alibaba, openb_node_list_all_node.csv", of_columns(alibaba_openb.NODE_COLUMNS), Use.IGNORED),
    Format("Alibaba, openb_pod_list_*.csv", of_columns(alibaba_openb.POD_COLUMNS), Use.IGNORED),
    PHILLY,
)
GPU_FLEET = (NODES_2023, NODES_2026, PODS, PHILLY)


def whole(title: str, **parts: str) -> Format:
    """A format of which everything is read, in this order; anything else is refused."""
    fields = tuple(Field(name.replace("_", " "), Use.READ, help) for name, help in parts.items())
    return Format(title, fields, Use.REFUSED)
