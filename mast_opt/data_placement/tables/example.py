"""Example instance of data placement as a planner would type it: three regions, four datasets, four workloads."""

EXAMPLE = {
    "regions": (
        ("us-east", 100, 4000, 20, 0.1),
        ("us-west", 80, 3000, 20, 0.1),
        ("eu-west", 60, 2000, None, None),
    ),
    "gpu_supply": (
        ("us-east", "H100", 64),
        ("us-east", "A100", 32),
        ("us-west", "H100", 32),
        ("eu-west", "A100", 64),
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
}
