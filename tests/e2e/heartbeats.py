"""What servers have said of themselves on a cluster, as `kubectl` shows it."""

from __future__ import annotations

import json
from typing import Any

from handler.state.heartbeat import heartbeat_name
from tests.kubectl import Kubectl


def looked_after(kubectl: Kubectl, namespace: str) -> set[str]:
    """Return the targets that servers look after; none where no server has been."""
    return set(json.loads(_annotations(kubectl, namespace).get("anneal.dev/targets", "{}")))


def watches(kubectl: Kubectl, namespace: str) -> bool:
    """Whether a server says that it watches health."""
    return "anneal.dev/health" in _annotations(kubectl, namespace)


def _annotations(kubectl: Kubectl, namespace: str) -> dict[str, Any]:
    found = kubectl.tried("get", "lease", heartbeat_name("default"), "-n", namespace, "-o", "json")
    return dict(json.loads(found.stdout)["metadata"].get("annotations") or {}) if found.returncode == 0 else {}
