"""Slurm: where and when a job would start, and whom it would stop, without submitting it.

request    what a job asks for, from options of ``sbatch``, a script, or a record of ``squeue``
reading    a cluster, from what Slurm's programs print
placement  nodes for a job, by the rules of Slurm's ``select/cons_tres``
host       Slurm behind the protocol of hosts: mast-opt serve --host slurm
forecast   start and victims, by the rules of its backfill scheduler
"""
