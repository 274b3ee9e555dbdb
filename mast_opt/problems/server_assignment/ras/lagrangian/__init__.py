"""Lagrangian bound of ras: prices, and what each reservation costs at least at them."""
