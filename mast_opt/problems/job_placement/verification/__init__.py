"""Verification of job placement: violations, terms and metrics of a plan."""
