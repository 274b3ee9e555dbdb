"""Example instance of data placement as a planner would type it: three regions, four datasets, four workloads."""

EXAMPLE = {
    "regions": (
        ("us-east", 100, 4000, 20, 0.1, 21),
        ("us-west", 80, 3000, 20, 0.1, 21),
        ("eu-west", 60, 2000, None, None, 23),
    ),
    "gpu_supply": (
        ("us-east", "H100", 64, 11),
        ("us-east", "A100", 32, 3.5),
        ("us-west", "H100", 32, 11),
        ("eu-west", "A100", 64, 3.9),
    ),
    "datasets": (
        ("clicks", 20, 1, 2),
        ("images", 12.5, 1, None),
        ("logs", 30, None, 2),
        ("profiles", 4, 1, 3),
    ),
    "replicas": (("clicks", "us-east"), ("images", "us-east"), ("logs", "us-west"), ("profiles", "eu-west")),
    "rules": (("profiles", "eu-west", "pinned"), ("clicks", "eu-west", "forbidden")),
    "residency": (("profiles", "eu-west"), ("profiles", "us-east")),
    "workloads": (
        ("ranking", 0, 800, "ads", False, 2),
        ("vision", 1, 500, "search", False, None),
        ("cleaning", 2, 1200, None, True, 1),
        ("embeddings", 0, 300, "ads", False, None),
    ),
    "workload_rules": (("embeddings", "us-west", "forbidden"),),
    "gpu_demand": (
        ("ranking", "H100", 32),
        ("vision", "H100", 16),
        ("vision", "A100", 32),
        ("embeddings", "A100", 24),
    ),
    "reads": (
        ("ranking", "clicks", 6),
        ("ranking", "profiles", 0.5),
        ("vision", "images", 3),
        ("cleaning", "logs", 8),
        ("embeddings", "profiles", 1),
    ),
    "current_runs": (
        ("ranking", "us-east", "H100", 1),
        ("vision", "us-east", "A100", 1),
        ("cleaning", "us-west", None, 1),
        ("embeddings", "eu-west", "A100", 1),
    ),
    "cpu_quota": (("us-east", "ads", 2000),),
    "links": (
        ("us-east", "us-west", 20, 10),
        ("us-west", "us-east", 20, 10),
        ("us-east", "eu-west", 8, 50),
        ("eu-west", "us-east", 8, 50),
        ("us-west", "eu-west", 5, 50),
        ("eu-west", "us-west", 5, 50),
    ),
    "candidates": (
        ("H100 in us-east", "gpus", "us-east", "H100", None, 8, 8, 250000, 90),
        ("A100 in eu-west", "gpus", "eu-west", "A100", None, 8, 4, 90000, 30),
        ("disks in us-west", "storage", "us-west", None, None, 10, 10, 12000, 14),
        ("us-east to eu-west", "link", "us-east", None, "eu-west", 4, 5, 30000, 60),
    ),
}
