"""Tables of server assignment: schemas, the problem and plans from tables and back, an example, warnings."""
