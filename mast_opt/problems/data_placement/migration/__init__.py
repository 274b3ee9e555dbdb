"""Migration of data placement: copies, deletions and moves of work in an order that keeps every limit."""
