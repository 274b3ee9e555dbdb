"""The live fleet: servers and running jobs as an object that another scheduler embeds."""
