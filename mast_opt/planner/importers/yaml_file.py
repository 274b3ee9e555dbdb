"""Documents of a YAML file, read with PyYAML where that is installed."""

from pathlib import Path
from typing import Any

from mast_opt.core.errors import BackendUnavailable, InputError
from mast_opt.core.limits import MOST_DOCUMENT_BYTES, read_regular


def yaml_documents(path: Path) -> list[Any]:
    """The documents of a YAML or JSON file. Raises InputError, and BackendUnavailable without PyYAML."""
    try:
        import yaml
    except ImportError as error:
        raise BackendUnavailable("PyYAML is not installed; install it with: pip install 'mast-opt[kueue]'") from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return list(yaml.load_all(read_regular(path, MOST_DOCUMENT_BYTES), Loader=loader))
    except (yaml.YAMLError, OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from error
