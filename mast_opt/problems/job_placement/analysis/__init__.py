"""Analysis of job placement: scenarios, and what may be asked of the problem."""
