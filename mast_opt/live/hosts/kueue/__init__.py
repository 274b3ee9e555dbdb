"""Kueue of Kubernetes: which cluster a workload is sent to, decided by bids over all clusters.

fields            fields of them that are not read, and what is said of each
objects           what is read of Kueue's objects
reading           Kueue's objects from what an API server or a file says
admission         what a cluster would do with a workload now: admit it, stop others for it, or let it wait
cohorts           queues and cohorts as nodes of a tree of quotas
eligibility       which pods may run on which flavor, and which workloads count towards a quota
places            flavors of queues as servers of a live loop
nomination        the bids for each workload that waits, and which clusters to nominate
patches           changes of a status that Kueue accepts
manifests         a folder of YAML, as a picture of clusters
api               what is needed of an API server; lightkube carries it out (extra ``kueue``)
watched           an API server whose workloads are kept at hand by a watch
manager_snapshot  what the API servers of a manager and its workers say now
hooks             whom workers stop, which cluster may stop others, who waits for data (Kueue 0.17 and later)
jobs              workloads as jobs of a loop
job_tracker       what a loop and the clusters say about the same workloads, and what has to be reported
host              Kueue behind the protocol of hosts: mast-opt serve --host kueue
dispatcher        the loop: look, decide, act, or only say what it would do (shadow)
"""
