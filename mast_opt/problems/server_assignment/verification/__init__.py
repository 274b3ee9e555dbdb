"""Verification of server assignment: violations, terms and metrics of a plan, and checks of certificates."""
