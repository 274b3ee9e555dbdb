"""Reasons why an instance has no plan: irreducible conflicts of limits, and the cheapest repairs."""
