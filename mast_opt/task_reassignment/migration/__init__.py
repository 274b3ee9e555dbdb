"""Migration of task reassignment: waves of moves that fit beside what still runs."""
