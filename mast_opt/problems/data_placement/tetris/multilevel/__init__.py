"""Multilevel start of tetris: datasets that are read together are clustered, and the clusters partitioned."""
