"""Slurm's accounting as a trace of jobs.

records     what is read of a job, whichever form it came in
sacct_text  ``sacct --parsable2``
sacct_json  ``sacct --json``
nodes       servers and partitions, from ``sinfo``
importer    the trace
"""
