"""Every backend, held to one set of tests."""

import pytest

pytest.register_assert_rewrite("tests.backends.conformance")
