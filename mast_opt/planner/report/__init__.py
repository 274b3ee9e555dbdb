"""What a person looks at: a solution in the terminal, and the progress towards it."""
