"""Example instance of server assignment as a planner would type it: eight servers, three reservations."""

EXAMPLE = {
    "servers": (
        ("s1", "compute", "rack-1", "board-1", "dc-1", "web", True),
        ("s2", "compute", "rack-1", "board-1", "dc-1", "web", False),
        ("s3", "gpu", "rack-2", "board-2", "dc-1", "training", True),
        ("s4", "compute", "rack-2", "board-2", "dc-1", None, False),
        ("s5", "gpu", "rack-3", "board-3", "dc-2", None, False),
        ("s6", "compute", "rack-3", "board-3", "dc-2", "web", True),
        ("s7", "gpu", "rack-4", "board-4", "dc-2", None, False),
        ("s8", "compute", "rack-4", "board-4", "dc-2", None, False),
    ),
    "reservations": (("web", 2, "embedded", 0.5), ("training", 4, "embedded", None), ("batch", 1, "none", None)),
    "values": (
        ("web", "compute", 1),
        ("training", "gpu", 2),
        ("training", "compute", 0.5),
        ("batch", "compute", 1),
        ("batch", "gpu", 0.5),
    ),
    "affinity": (("web", "dc-1", 0.6, 0.2),),
}
