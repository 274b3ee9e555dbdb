"""Importers of public traces of clusters."""
