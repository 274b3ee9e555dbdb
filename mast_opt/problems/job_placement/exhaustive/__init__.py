"""Batch solvers of job placement: exhaustive, exhaustive+repair and baseline policies.

solver, baselines          take every job of the queue once
published_policies         so do policies of the literature, by published_scores
batch, batch_state         admission in the order of the queue; the decisions so far, next to the engine's ledger
ejection_chains            second chances for jobs that were refused
ruin_and_recreate          exhaustive+repair; local_search and sub_mip are its neighbourhoods
objective, priced_terms    the objective from the ledger; the terms that each solver takes into account
params                     parameters of exhaustive and exhaustive+repair
"""
