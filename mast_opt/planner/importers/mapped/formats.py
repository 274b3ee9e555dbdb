"""Fields that are read of the dumps of cluster tools."""

from mast_opt.planner.importers.fields import Field, Format, Tried, Use

READ, WARNED, REFUSED = Use.READ, Use.WARNED, Use.REFUSED
KUBECTL = (Tried("kubectl 1.32.4", "a kube-apiserver 1.20.2 without kubelets"),)
SLURM = (
    Tried("Slurm 22.05.8", "sinfo --json"),
    Tried("Slurm 24.11.5", "sinfo --Node --json, scontrol show nodes --json"),
)

NODE = Format(
    "kubectl: Node",
    (
        Field("metadata.name", READ, "node"),
        Field("metadata.labels", READ, "region and zone (topology.kubernetes.io), gpu_type (nvidia.com/gpu.product)"),
        Field("status.allocatable", READ, "cpu_cores, memory_gib, gpus: all resources that end in /gpu"),
        Field("status.capacity", READ, "the same, where nothing is allocatable"),
        Field("status.conditions[]", READ, "ready: the condition Ready"),
        Field("spec.unschedulable", READ, "ready: not cordoned"),
    ),
    Use.IGNORED,
    KUBECTL,
)
POD = Format(
    "kubectl: Pod",
    (
        Field("metadata.name", READ, "pod"),
        Field("metadata.namespace", READ, "namespace"),
        Field("metadata.ownerReferences[].name", READ, "owner: the first"),
        Field("spec.nodeName", READ, "node"),
        Field("spec.priority", READ, "priority; 0 if missing"),
        Field("spec.containers[].name", READ, "whose status counts"),
        Field("spec.containers[].resources.requests", READ, "gpus, cpu_cores, memory_gib: added"),
        Field("spec.containers[].resources.limits", READ, "the same, where there is no request"),
        Field("spec.initContainers[].name", READ, "whose status counts"),
        Field("spec.initContainers[].restartPolicy", READ, "Always: a sidecar, which is added"),
        Field("spec.initContainers[].resources.requests", READ, "the largest, with the sidecars before it"),
        Field("spec.initContainers[].resources.limits", READ, "the same, where there is no request"),
        Field("spec.overhead", READ, "added"),
        Field("spec.resources.requests", READ, "of the pod as a whole, in place of its containers"),
        Field("spec.resources.limits", READ, "the same, where nobody states a request"),
        Field("status.phase", READ, "phase; pods that have ended are in the table too"),
        Field("status.containerStatuses[].name", READ, "the container"),
        Field("status.containerStatuses[].resources.requests", READ, "what it has while it is resized"),
        Field("status.containerStatuses[].allocatedResources", READ, "the same"),
        Field("status.initContainerStatuses[].name", READ, "the init container"),
        Field("status.initContainerStatuses[].resources.requests", READ, "what it has while it is resized"),
        Field("status.initContainerStatuses[].allocatedResources", READ, "the same"),
        Field("status.conditions[]", READ, "PodResizePending: a resize that cannot be"),
        Field("spec.resourceClaims", WARNED, "devices of resource claims are not counted"),
    ),
    Use.IGNORED,
    KUBECTL,
)
SERIES = Format(
    "Prometheus: a series of /api/v1/query_range",
    (
        Field("metric", READ, "a column for each label; __name__ is metric, mean, max, last and points are label_…"),
        Field("values", READ, "mean, max, last, points; a series with NaN or ±Inf is left out, with a warning"),
        Field("histograms", WARNED, "a series of histograms is left out"),
    ),
    Use.IGNORED,
    (Tried("Prometheus 2.42.0", "range, instant (refused) and failed queries"),),
)
SCONTROL = Format(
    "Slurm: scontrol show nodes --json, sinfo --json of 22.05",
    (
        Field("name", READ, "node, host"),
        Field("partitions", READ, "partition: a row for each"),
        Field("cluster_name", READ, "cluster"),
        Field("gres", READ, "gpu_type and gpus: a row for each type; other resources are ignored"),
        Field("cpus", READ, "cpu_cores, less what is reserved"),
        Field("effective_cpus", READ, "cpu_cores, where Slurm says so"),
        Field("specialized_cores", READ, "CoreSpecCount: not for jobs"),
        Field("threads", READ, "CPUs of such a core"),
        Field("specialized_cpus", READ, "CpuSpecList: not for jobs"),
        Field("real_memory", READ, "memory_gib, less what is reserved"),
        Field("specialized_memory", READ, "MemSpecLimit: not for jobs"),
        Field("state", READ, "state, available"),
        Field("state_flags", READ, "the same in 22.05"),
    ),
    Use.IGNORED,
    SLURM,
)
SINFO = Format(
    "Slurm: sinfo --Node --json from 23.02 on",
    (
        Field("nodes.nodes", READ, "node, host"),
        Field("partition.name", READ, "partition"),
        Field("cluster", READ, "cluster"),
        Field("gres.total", READ, "gpu_type and gpus: a row for each type; other resources are ignored"),
        Field("cpus.minimum", READ, "refused where it is not the maximum: nodes of a group have to be equal"),
        Field("cpus.maximum", READ, "cpu_cores, less what is reserved"),
        Field("memory.minimum", READ, "refused where it is not the maximum"),
        Field("memory.maximum", READ, "memory_gib, less what is reserved"),
        Field("resource_spec.cpus", READ, "CPUs that are not for jobs"),
        Field("resource_spec.memory", READ, "memory that is not for jobs"),
        Field("node.state", READ, "state, available"),
    ),
    Use.IGNORED,
    SLURM,
)
FORMATS = (NODE, POD, SERIES, SCONTROL, SINFO)
