"""The law of imports, as data: the rooms of `handler` in their layers."""

from __future__ import annotations

ADAPTERS = {"triggers", "source", "render", "cluster", "state", "queues", "prometheus", "aws", "feedback"}
LAYERS: tuple[set[str], ...] = (
    {"model"},
    {"config"},
    ADAPTERS | {"health"},
    {"rollout"},
    {"plan"},
    {"engine.health"},
    {"engine.planner"},
    {"engine.run"},
    {"engine.apply"},
    {"engine.waits"},
    {"engine.rollout_runner"},
    {"engine"},
    {"app"},
    {"inspect"},
    {"web", "worker"},
    {"library"},
    {"functions"},
    {"cli"},
    {"wsgi", "__main__"},
)
"""The lowest first. A module imports its own room and rooms of lower layers; rooms of one layer never import each other."""
PURE = {"model", "health", "rollout", "plan"}
"""Pure rooms: they import no adapter, though one lies lower."""
