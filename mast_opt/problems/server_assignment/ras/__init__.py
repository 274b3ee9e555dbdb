"""RAS: the server-assignment solver of our own (Lagrangian prices, rounding, local search, sub-MIPs), with a bound."""
