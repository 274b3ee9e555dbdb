"""Declarations of a problem about itself, so that the layers above need not name it."""
