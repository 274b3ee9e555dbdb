"""Migration of job placement: stops and starts in an order that keeps every limit."""
