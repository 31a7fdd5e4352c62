"""Commands of the command line's own room."""

from __future__ import annotations

from tests.in_process import one_render_child  # noqa: F401 - a fixture
