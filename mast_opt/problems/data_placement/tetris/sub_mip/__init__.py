"""Sub-MIPs of tetris: neighbourhoods, work alone, and the completion of a plan."""
