"""mast-opt: data placement, job placement and server assignment for machine-learning training over many regions.

    import mast_opt

    problem = mast_opt.read("my-instance")
    solution = mast_opt.solve(problem, time_limit_s=60)
    mast_opt.write_plan(problem, solution, "my-plan")

Everything public is listed in ``__init__.pyi`` and in ``__all__``. Names are loaded when they are first used, and a
solver's library when that solver first runs.
"""

import lazy_loader

import mast_opt.core.fork_safety  # noqa: F401 - notices forks from now on

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("mast-opt")
    globals()[name] = value = _attribute(name)
    return value
