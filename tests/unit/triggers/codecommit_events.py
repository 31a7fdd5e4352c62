"""Events of CodeCommit, as EventBridge carries them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EVENTS = Path(__file__).parent / "events"
HTTPS = "https://git-codecommit.eu-central-1.amazonaws.com/v1/repos/shop"


def sample(name: str = "branch-updated") -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())
