"""Search for one bid: what every server has left, what could be stopped, and where a job costs least."""
