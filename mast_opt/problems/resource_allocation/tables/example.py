"""Example instance of resource allocation as a planner would type it: two jobs on GPUs of three types."""

EXAMPLE = {
    "resources": (("v100", 1), ("p100", 1), ("k80", 1)),
    "groups": (("research", 1, 0), ("product", 1, 0)),
    "jobs": (
        ("bert", 1, "research", False, 0, 1.1667, 300, 0, 0, 0),
        ("resnet", 1, "product", False, 0, 2, 500, 0, 0, 60),
    ),
    "configurations": (
        ("bert-v100", 3.1),
        ("bert-p100", 2),
        ("bert-k80", 0.8),
        ("resnet-v100", 3.1),
        ("resnet-p100", 2),
        ("resnet-k80", 0.8),
    ),
    "members": (
        ("bert-v100", "bert", 2),
        ("bert-p100", "bert", 1),
        ("bert-k80", "bert", 0.5),
        ("resnet-v100", "resnet", 3),
        ("resnet-p100", "resnet", 2),
        ("resnet-k80", "resnet", 1),
    ),
    "uses": (
        ("bert-v100", "v100", 1),
        ("bert-p100", "p100", 1),
        ("bert-k80", "k80", 1),
        ("resnet-v100", "v100", 1),
        ("resnet-p100", "p100", 1),
        ("resnet-k80", "k80", 1),
    ),
}
