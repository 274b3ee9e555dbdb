"""Analysis of task reassignment: scenarios, and what may be asked of the problem."""
