"""Linear and mixed-integer programs of resource allocation, and the way from their shares to a plan."""
