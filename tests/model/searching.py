"""How far the models search: the same examples each time, or `ANNEAL_MODEL_EXAMPLES=5000` further ones, by chance."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

EXAMPLES = int(os.environ.get("ANNEAL_MODEL_EXAMPLES", "0"))
TIMEOUT = 0 if EXAMPLES else 900  # seconds of one search


def profile(examples: int, steps: int) -> settings:
    """Return the settings of one search: so many examples, unless more are asked for, each of at most so many steps."""
    return settings(
        max_examples=EXAMPLES or examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not EXAMPLES,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


BUDGET = settings(
    max_examples=400,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # that it fails is enough
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
"""Of a search for a mutant."""
