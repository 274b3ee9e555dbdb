"""An instance from tables of somebody's own: files, databases and dumps of cluster tools, by a mapping file."""
