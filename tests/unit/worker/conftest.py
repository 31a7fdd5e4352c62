"""The fixtures of queues: the worker's end of a shared one, and patience on a busy machine."""

from __future__ import annotations

from tests.unit.queues.conftest import _patient, side

__all__ = ["_patient", "side"]
