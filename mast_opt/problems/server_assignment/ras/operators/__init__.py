"""Changes that the local search of ras tries, and what they cost."""
