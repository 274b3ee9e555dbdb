"""Instances of resource allocation from what other schedulers take as input."""
