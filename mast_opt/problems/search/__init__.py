"""Parts that the problems' own solvers share: the interface to ``solve``, time budgets, random numbers, sub-MIPs."""
