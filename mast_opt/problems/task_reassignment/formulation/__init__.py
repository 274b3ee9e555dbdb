"""The mixed-integer program of task reassignment: the formulation, and the codec of plans."""
