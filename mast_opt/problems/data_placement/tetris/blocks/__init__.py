"""Blocks of tetris: parts of an instance that workers search and bound by themselves, and what joins them."""
