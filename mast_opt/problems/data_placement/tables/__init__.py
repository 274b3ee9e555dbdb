"""Tables of data placement: schemas, the problem and plans from tables and back, an example, warnings."""
