"""Builders: problems of every kind from Python calls, one entity at a time, each checked when it is added."""
