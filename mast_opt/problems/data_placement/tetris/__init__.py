"""Tetris: a metaheuristic for data placement (annealing, Gibbs sampling, sub-MIPs) with a proven Lagrangian bound.

``instance_arrays`` and ``state`` hold the problem and a plan as flat arrays; ``operators`` price and apply changes
exactly and propose likely ones; ``annealing`` and ``gibbs`` are the searches over them; ``lagrangian`` computes the
bound; ``tetris_search`` runs both side by side.
"""
