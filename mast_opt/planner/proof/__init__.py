"""Proofs of a plan's bound in the VIPR format, in exact rational arithmetic, and their checker."""
