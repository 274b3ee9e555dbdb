"""Tests of proofs and of their checker."""
