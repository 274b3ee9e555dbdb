"""Batch solvers of job placement: exhaustive, exhaustive+repair and baseline policies.

solver                     takes every job of the queue once; second chances for jobs that were refused
baselines                  simple policies, and those of the literature by their scores
batch, batch_state         admission in the order of the queue; the decisions so far, next to the engine's ledger
ruin_and_recreate          exhaustive+repair; a local search and sub_mip are its neighbourhoods
objective                  the objective from the ledger
params                     parameters of exhaustive and exhaustive+repair
"""
