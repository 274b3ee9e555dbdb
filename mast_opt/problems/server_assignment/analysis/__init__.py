"""Analysis of server assignment: scenarios, and what may be asked of the problem."""
