"""Migration of server assignment: waves of moves that keep every guarantee."""
