"""Fields of Kueue's objects that are not read: what is said where they are set."""

from mast_opt.planner.importers.fields import Field

POD_SET = (
    Field("topologyRequest", "a topology"),
    Field("template.spec.resourceClaims", "resource claims"),
)
"""Fields that keep a workload from being said to fit."""
WARNED: dict[str, tuple[Field, ...]] = {
    "ClusterQueue": (
        Field("spec.namespaceSelector.matchLabels", "namespaces that may use it are not looked at"),
        Field("spec.namespaceSelector.matchExpressions", "namespaces that may use it are not looked at"),
        Field("spec.fairSharing", "fair sharing is left to the worker"),
        Field("spec.admissionScope", "the order by use of LocalQueues is left to the worker"),
    ),
    "Cohort": (Field("spec.fairSharing", "fair sharing is left to the worker"),),
    "ResourceFlavor": (
        Field("spec.topologyName", "room on the nodes of a topology is left to the worker"),
        Field("spec.tolerations", "tolerations that a flavor adds are not looked at"),
    ),
}
"""Kind → fields of which a warning says that they are not looked at."""
