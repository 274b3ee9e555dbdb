"""Kueue of Kubernetes: which cluster a workload is sent to, decided by bids over all clusters.

quantities  amounts as Kubernetes writes them, in base units
objects     what is read of Kueue's objects
reading     Kueue's objects from what an API server or a file says
fleet       quotas of clusters and what they have admitted, as a live fleet
nomination  the bids for each workload that waits, and which clusters to nominate
patches     changes of a status that Kueue accepts
manifests   a folder of YAML, as a picture of clusters
api         what is needed of an API server; lightkube carries it out (extra ``kueue``)
watched     an API server whose workloads are kept at hand by a watch
sight       what the API servers of a manager and its workers say now
jobs        workloads as jobs of a loop
book        what a loop and the clusters say about the same workloads, and what has to be reported
host        Kueue behind the protocol of hosts: mast-opt serve --host kueue
dispatcher  the loop: look, decide, act, or only say what it would do (shadow)
"""
