"""Verification of task reassignment: violations, terms and metrics of a plan, and the aggregate lower bound."""
