"""Tables of resource allocation: schemas, the problem and plans from tables and back, an example, warnings."""
