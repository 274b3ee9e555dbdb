"""Importer of an instance from public data of cloud regions, a GPU fleet and a list of jobs."""
