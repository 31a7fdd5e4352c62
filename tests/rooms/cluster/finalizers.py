"""Objects that a finalizer holds, and how they are released."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from handler.cluster.api import Api
from handler.model.names import Resource


def once(act: Callable[[], Any], when: Callable[[], bool]) -> Callable[[], None]:
    """Return what a wait asks several times a second: it acts once, as soon as that holds."""
    acted = threading.Event()

    def stop() -> None:
        if not acted.is_set() and when():
            acted.set()
            act()

    return stop


def drop_finalizers(api: Api, resource: Resource, namespace: str, name: str) -> None:
    api.patch(resource.path(namespace, name), {"metadata": {"finalizers": None}}, "application/merge-patch+json")
