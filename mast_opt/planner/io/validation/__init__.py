"""Validation of raw tables against a schema, with every fault at once."""
