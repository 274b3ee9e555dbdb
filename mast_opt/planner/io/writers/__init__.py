"""One file for each shape that an instance is written in."""
