"""A program restated in integers, for solvers that know nothing else."""
