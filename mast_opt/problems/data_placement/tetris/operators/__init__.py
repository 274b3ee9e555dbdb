"""Operators of tetris: changes of workloads and closures, their prices, and candidate lists."""
