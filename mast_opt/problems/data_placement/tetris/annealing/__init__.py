"""Simulated annealing of tetris: kernels, cooling, parallel parts, restarts and packed gangs."""
