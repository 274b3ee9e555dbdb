"""Example instance of task reassignment as a planner would type it: three machines, four processes of two services."""

EXAMPLE = {
    "resources": (("cores", False, 1), ("disk", True, 2)),
    "machines": (
        ("m1", "hall-1", "pod-1", "east", True),
        ("m2", "hall-1", "pod-2", "east", True),
        ("m3", "hall-2", "pod-2", "west", True),
    ),
    "capacities": (
        ("m1", "cores", 64, 48),
        ("m1", "disk", 1000, None),
        ("m2", "cores", 64, 48),
        ("m2", "disk", 1000, 800),
        ("m3", "cores", 32, 24),
        ("m3", "disk", 2000, 1600),
    ),
    "services": (("web", 2), ("store", 1)),
    "dependencies": (("web", "store"),),
    "processes": (
        ("web-1", "web", "m1", 1),
        ("web-2", "web", "m2", 1),
        ("store-1", "store", "m1", 5),
        ("store-2", "store", "m2", 5),
    ),
    "needs": (
        ("web-1", "cores", 24),
        ("web-2", "cores", 24),
        ("store-1", "cores", 30),
        ("store-1", "disk", 700),
        ("store-2", "cores", 8),
        ("store-2", "disk", 300),
    ),
    "balances": (("cores", "disk", 10, 1),),
    "move_costs": (("east", "west", 10), ("west", "east", 10)),
}
