"""Analysis hooks of resource allocation: conflicts, explanations and scenarios."""
