"""Output for people: a solution in the terminal, and the progress towards it."""
