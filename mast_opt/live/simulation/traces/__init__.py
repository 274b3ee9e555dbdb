"""Traces of submitted jobs: the tables of the kind ``job-trace``, and importers of public traces."""
