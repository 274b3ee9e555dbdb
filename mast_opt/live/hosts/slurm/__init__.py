"""Slurm: where and when a job would start, and whom it would stop, without submitting it.

request    what a job asks for, from options of ``sbatch``, a script, or a record of ``squeue``
reading    a cluster, from what Slurm's programs print
placement  nodes for a job, by the rules of Slurm's ``select/cons_tres``
forecast   start and victims, by the rules of its backfill scheduler
"""
