"""How long the harness and the tests wait for what is to come: one patience of them all, so large that only what never comes meets it.

ANNEAL_TEST_PATIENCE is a factor, for a machine that is slower still.
"""

from __future__ import annotations

import os

PATIENCE = 90.0 * float(os.environ.get("ANNEAL_TEST_PATIENCE", "1"))
"""Seconds."""
