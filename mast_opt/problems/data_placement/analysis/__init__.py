"""Analysis of data placement: limits that may give way, scenarios, marginal values, losses and risk."""
