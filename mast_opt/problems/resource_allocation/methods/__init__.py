"""Methods of resource allocation: how each policy is solved by linear programs, or by one with whole shares."""
