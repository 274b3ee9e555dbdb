"""What a problem declares about itself, so that the layers above need not name it."""
