"""Gibbs sweeps of tetris for large instances, with prices of congestion and reduced costs of replicas."""
