"""pytest's plugin under `coverage run`: each line and branch is noted with the file of tests that ran it, in what tests start, too."""

from __future__ import annotations

import os
from collections.abc import Generator

import coverage
import pytest
from coverage.config import CoverageConfig

CONFIG = "COVERAGE_PROCESS_CONFIG"
_config = os.environ.get(CONFIG, "")  # before the tests' own conftest takes it away
_last = [""]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Change the context with the file."""
    file = item.nodeid.partition("::")[0]
    traced = coverage.Coverage.current()
    if traced is not None and file != _last[0]:
        _last[0] = file
        traced.switch_context(file)
        if _config:
            config = CoverageConfig.deserialize(_config)
            config.context = file
            os.environ[CONFIG] = config.serialize()
    return (yield)
