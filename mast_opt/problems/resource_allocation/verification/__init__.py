"""Verification of resource allocation: violations, the policy's value and metrics of a plan, and bounds from prices."""
