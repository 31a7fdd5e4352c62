"""Time limits of a check of `success`, as upstream calls them. The runner of the checks enforces them; without one there is no limit."""

from __future__ import annotations

from typing import Any

from handler.rollout.spec_fields import Fields

KEYS = ("timeout", "progressTimeout", "pollInterval")
TIMEOUT, PROGRESS, POLL = 3600.0, 300.0, 5.0


def limits(fields: Fields) -> dict[str, Any]:
    """Read the three of a check that has them.

    `pollInterval` is upstream's, and accepted: the object is watched, so every change is seen at once, and nothing is polled.
    """
    return {
        "timeout": fields.seconds("timeout", TIMEOUT, least=1.0),
        "progressTimeout": fields.seconds("progressTimeout", PROGRESS, least=1.0),
        "pollInterval": fields.seconds("pollInterval", POLL, least=0.1),
    }
