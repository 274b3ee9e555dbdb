"""Fields that are read of Kueue's objects; the page of importers is made from them."""

from __future__ import annotations

from mast_opt.planner.importers.fields import Field, Format, Tried, Use

READ, WARNED, REFUSED = Use.READ, Use.WARNED, Use.REFUSED

POD_SET = (
    Field("topologyRequest", REFUSED, "a topology"),
    Field("template.spec.resourceClaims", REFUSED, "resource claims"),
)
"""Fields that keep a workload from being said to fit."""
FIELDS: dict[str, tuple[Field, ...]] = {
    "Workload": (
        Field("metadata.namespace", READ, "with the name, its key"),
        Field("metadata.name", READ, "with the namespace, its key"),
        Field("metadata.uid", READ, "names of jobs of the live loop"),
        Field("metadata.resourceVersion", READ, "patches are for this version"),
        Field("metadata.creationTimestamp", READ, "the order among equal priorities"),
        Field("metadata.deletionTimestamp", READ, "does not start any more; holds its quota until it is gone"),
        Field("metadata.annotations", READ, "mast-opt.io/datasets: what it reads"),
        Field("metadata.ownerReferences[].uid", READ, "the Job that it was made for, which does not count again"),
        Field("metadata.ownerReferences[].kind", READ, "the same, where there is no uid"),
        Field("metadata.ownerReferences[].name", READ, "the same"),
        Field("spec.queueName", READ, "its LocalQueue"),
        Field("spec.priority", READ, "who is first, and who may be stopped"),
        Field("spec.active", READ, "false: does not start"),
        Field("spec.maximumExecutionTimeSeconds", READ, "its time limit, in a live loop"),
        Field("spec.podSets[].template.spec.activeDeadlineSeconds", READ, "the same; the least counts"),
        Field("spec.podSets[].name", READ, "the pod set"),
        Field("spec.podSets[].count", READ, "pods"),
        Field("spec.podSets[].minCount", READ, "fewest pods with which it may be admitted"),
        Field("spec.podSets[].template.spec.containers[].resources.requests", READ, "what a pod asks for"),
        Field(
            "spec.podSets[].template.spec.containers[].resources.limits", READ, "the same, where there is no request"
        ),
        Field(
            "spec.podSets[].template.spec.initContainers[].resources.requests",
            READ,
            "the largest, with its sidecars",
        ),
        Field("spec.podSets[].template.spec.initContainers[].resources.limits", READ, "the same"),
        Field("spec.podSets[].template.spec.initContainers[].restartPolicy", READ, "Always: a sidecar"),
        Field("spec.podSets[].template.spec.overhead", READ, "added to what a pod asks for"),
        Field("spec.podSets[].template.spec.resources.requests", READ, "of the pod as a whole: cpu, memory, hugepages"),
        Field("spec.podSets[].template.spec.resources.limits", READ, "the same, where nobody states a request"),
        Field("spec.podSets[].template.spec.nodeSelector", READ, "labels of flavors"),
        Field(
            "spec.podSets[].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms[].matchExpressions[]",
            READ,
            "labels of flavors; operators In, NotIn, Exists, DoesNotExist, Gt, Lt",
        ),
        Field("spec.podSets[].template.spec.tolerations[]", READ, "taints of flavors"),
        *(Field(f"spec.podSets[].{one.name}", one.use, f"answer: “not looked at: {one.help}”") for one in POD_SET),
        Field("status.conditions[]", READ, "QuotaReserved, Admitted, Evicted, Finished"),
        Field("status.admission.clusterQueue", READ, "whose quota it holds"),
        Field("status.admission.podSetAssignments[].name", READ, "the pod set"),
        Field("status.admission.podSetAssignments[].count", READ, "pods that were admitted"),
        Field("status.admission.podSetAssignments[].flavors", READ, "where each resource counts"),
        Field("status.admission.podSetAssignments[].resourceUsage", READ, "what it holds; else what its pods ask for"),
        Field("status.reclaimablePods[].name", READ, "the pod set"),
        Field("status.reclaimablePods[].count", READ, "pods whose quota has been given back"),
        Field("status.admissionChecks[].name", READ, "checks of MultiKueue and of ours"),
        Field("status.admissionChecks[].state", READ, "whether it is our turn"),
        Field("status.admissionChecks[].message", READ, "what has been said already"),
        Field("status.nominatedClusterNames", READ, "clusters that try already"),
        Field("status.clusterName", READ, "the cluster that MultiKueue chose"),
    ),
    "ClusterQueue": (
        Field("metadata.name", READ, "its name"),
        Field("spec.cohortName", READ, "the cohort above it"),
        Field("spec.cohort", READ, "the same in v1beta1"),
        Field("spec.resourceGroups[].coveredResources", READ, "resources that it admits; others are not looked at"),
        Field("spec.resourceGroups[].flavors[].name", READ, "flavors in the order in which they are tried"),
        Field("spec.resourceGroups[].flavors[].resources[].name", READ, "any resource, each for itself"),
        Field("spec.resourceGroups[].flavors[].resources[].nominalQuota", READ, "its quota"),
        Field("spec.resourceGroups[].flavors[].resources[].borrowingLimit", READ, "how much more it may use"),
        Field("spec.resourceGroups[].flavors[].resources[].lendingLimit", READ, "how much others may use"),
        Field("spec.preemption.withinClusterQueue", READ, "who may be stopped in the queue"),
        Field("spec.preemption.reclaimWithinCohort", READ, "who may be stopped in others"),
        Field("spec.preemption.borrowWithinCohort.policy", READ, "whether that goes while it borrows"),
        Field("spec.preemption.borrowWithinCohort.maxPriorityThreshold", READ, "up to which priority"),
        Field("spec.flavorFungibility.whenCanBorrow", READ, "whether the next flavor is tried first"),
        Field("spec.flavorFungibility.whenCanPreempt", READ, "whether the next flavor is tried first"),
        Field("spec.admissionChecks", READ, "checks of its workloads"),
        Field("spec.admissionChecksStrategy.admissionChecks[].name", READ, "checks of its workloads"),
        Field("spec.stopPolicy", READ, "Hold and HoldAndDrain: admits nothing"),
        Field("status.conditions[]", READ, "Active: false admits nothing"),
        Field("spec.namespaceSelector.matchLabels", WARNED, "namespaces that may use it are not looked at"),
        Field("spec.namespaceSelector.matchExpressions", WARNED, "namespaces that may use it are not looked at"),
        Field("spec.fairSharing", WARNED, "fair sharing is left to the worker"),
        Field("spec.admissionScope", WARNED, "the order by use of LocalQueues is left to the worker"),
    ),
    "Cohort": (
        Field("metadata.name", READ, "its name"),
        Field("spec.parentName", READ, "the cohort above it"),
        Field("spec.parent", READ, "the same in v1alpha1"),
        Field("spec.resourceGroups[].flavors[].name", READ, "as in a ClusterQueue"),
        Field("spec.resourceGroups[].flavors[].resources[].name", READ, "as in a ClusterQueue"),
        Field("spec.resourceGroups[].flavors[].resources[].nominalQuota", READ, "quota of its own"),
        Field("spec.resourceGroups[].flavors[].resources[].borrowingLimit", READ, "as in a ClusterQueue"),
        Field("spec.resourceGroups[].flavors[].resources[].lendingLimit", READ, "as in a ClusterQueue"),
        Field("spec.fairSharing", WARNED, "fair sharing is left to the worker"),
    ),
    "LocalQueue": (
        Field("metadata.namespace", READ, "with the name, its key"),
        Field("metadata.name", READ, "with the namespace, its key"),
        Field("spec.clusterQueue", READ, "its ClusterQueue"),
        Field("spec.stopPolicy", READ, "Hold and HoldAndDrain: admits nothing"),
    ),
    "ResourceFlavor": (
        Field("metadata.name", READ, "its name"),
        Field("spec.nodeLabels", READ, "labels that pods select by"),
        Field("spec.nodeTaints[]", READ, "taints that pods must tolerate"),
        Field("spec.topologyName", WARNED, "room on the nodes of a topology is left to the worker"),
        Field("spec.tolerations", WARNED, "tolerations that a flavor adds are not looked at"),
    ),
    "Job": (
        Field("metadata.labels", READ, "kueue.x-k8s.io/queue-name: its LocalQueue; Jobs without it do not count"),
        Field("metadata.namespace", READ, "with the name, its key"),
        Field("metadata.name", READ, "with the namespace, its key"),
        Field("metadata.uid", READ, "whether it has a Workload already"),
        Field("metadata.creationTimestamp", READ, "the order among equal priorities"),
        Field("metadata.deletionTimestamp", READ, "does not start any more"),
        Field("metadata.annotations", READ, "kueue.x-k8s.io/job-min-parallelism, mast-opt.io/datasets"),
        Field("spec.parallelism", READ, "pods"),
        Field("spec.completions", READ, "at most so many pods, less those that succeeded"),
        Field("spec.template", READ, "as in a Workload"),
        Field("status.succeeded", READ, "pods that are done"),
        Field("status.active", READ, "it runs already"),
        Field("status.conditions[]", READ, "Complete, Failed: it has ended"),
    ),
}
"""Kind → its fields; further fields are ignored."""
TRIED = (Tried("Kueue's CRDs v1beta2", "objects in a kube-apiserver 1.20 with all of them; no controllers"),)
FORMATS = tuple(Format(f"Kueue: {kind}", fields, Use.IGNORED, TRIED) for kind, fields in FIELDS.items())
