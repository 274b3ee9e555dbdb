"""Solvers of our own for job placement: exhaustive, exhaustive+repair and baseline policies.

state, layout              what is free, who holds what, and in which order servers lie in memory
ledger                     taking and giving back
fit, search                where a job fits without stopping anything
frontier, victims, gangs   which running jobs to stop for it, and what that costs
place                      one job: search, then victims, then the servers
batch, chances             a whole queue, in order; second chances for those that were refused
exhaustive, baselines      the solvers that take every job once
repair                     improving a batch
"""
