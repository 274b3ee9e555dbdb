"""Mechanisms on top of an allocation, which take a part of it so that nobody gains by a false report."""
