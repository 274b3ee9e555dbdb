"""SkyPilot: a task's infra, ranked by bids over regions, as advice or as an admin policy.

advice     tables of an operator, a task, and the bids for it
catalogue  prices of GPUs and of egress, as SkyPilot's own catalogue has them (extra ``skypilot``)
policy     the admin policy in SkyPilot's process
rest       the same policy over HTTP
"""
