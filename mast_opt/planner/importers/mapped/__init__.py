"""Importer of your own tables: files, databases and dumps of cluster tools, by a mapping file."""
