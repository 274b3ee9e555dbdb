"""Schedulers that carry out what a loop decides, behind one protocol; what each needs is imported when it is used.

protocol   what a host can do, and what it answers
simulated  a host in this process that runs jobs for as long as they say
kueue      Kueue of Kubernetes, with MultiKueue over several clusters
skypilot   tasks of SkyPilot: advice and an admin policy, not behind the protocol
slurm      jobs of Slurm: advice, and held jobs that a loop pins to nodes
tracking   what a loop wants of its jobs, for hosts with work of their own
"""
