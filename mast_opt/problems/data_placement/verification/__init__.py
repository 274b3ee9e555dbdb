"""Verification of data placement: violations, terms and metrics of a plan, and checks of certificates."""
