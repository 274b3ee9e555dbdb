"""Migration of task reassignment: waves of moves that fit next to what still runs."""
