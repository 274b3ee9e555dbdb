"""Output on a terminal: progress, solutions and answers."""
