"""A plan as one self-contained page or picture."""
