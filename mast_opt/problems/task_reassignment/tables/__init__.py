"""Tables of task reassignment: schemas, the problem and plans from tables and back, an example, warnings."""
