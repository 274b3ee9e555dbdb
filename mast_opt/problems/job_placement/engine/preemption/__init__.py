"""Search for the running jobs to stop for a job: candidates, bounds of groups, and exact searches on servers and
groups."""
