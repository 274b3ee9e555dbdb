"""Example instance of job placement as a planner would type it: two regions, four servers, three pending jobs."""

EXAMPLE = {
    "regions": (("us-east",), ("eu-west",)),
    "clusters": (("east-1", "us-east"), ("eu-1", "eu-west")),
    "servers": (
        ("east-1-a", "east-1", "rack-1", "H100", 8, 96, 1024),
        ("east-1-b", "east-1", "rack-1", "H100", 8, 96, 1024),
        ("east-1-c", "east-1", "rack-2", "A100", 4, 64, 512),
        ("eu-1-a", "eu-1", "rack-1", "A100", 8, 96, 1024),
    ),
    "jobs": (
        ("ranking", 0, None, 2, 8, 48, 256, "cluster", "rack", "ads", 10, 0),
        ("vision", 1, 20, 1, 4, 16, 128, "server", None, "search", None, 60),
        ("notebook", 2, None, 1, 0.5, 4, 16, None, None, None, None, 90),
    ),
    "job_gpu_types": (("ranking", "H100", None, None), ("vision", "A100", None, None), ("vision", "H100", 2, None)),
    "job_datasets": (("ranking", "clicks", 6), ("vision", "images", None)),
    "replicas": (("clicks", "us-east"), ("images", "us-east"), ("images", "eu-west")),
    "running": (("cleaning", 2, True, 1.5, "ads"),),
    "allocations": (("cleaning", "east-1-b", 1, 4, 32, 128, None, None),),
    "quotas": (("ads", 24, None), ("search", 8, "A100")),
    "costs": (("vision", "eu-1", 1.5),),
    "residency": (("clicks", "us-east"),),
    "movable": (),
    "move_limits": (),
    "job_parts": (),
}
