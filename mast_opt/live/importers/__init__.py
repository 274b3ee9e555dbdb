"""Instances of resource allocation from the files of Gavel."""
