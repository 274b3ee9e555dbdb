"""Importer of job placement from a public description of a GPU fleet."""
