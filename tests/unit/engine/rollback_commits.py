"""Commits of a target that goes back by itself where a rollout fails."""

from __future__ import annotations

import json
from dataclasses import replace

from handler.config.settings import Rollback
from tests.fakes.engine import ONE
from tests.unit.engine.in_memory_cluster import InMemoryCluster, config_map

BACK = replace(ONE, targets=(replace(ONE.targets[0], rollback=Rollback(on_failure=True)),))

HOOK = {"argocd.argoproj.io/hook": "PreSync"}


def push(fake: InMemoryCluster, value: str, **more: dict[str, str]) -> str:
    """Push a commit with one ConfigMap, and others with these annotations."""
    maps = {"web": config_map("web", value)} | {name: config_map(name, value) for name in more}
    for name, marks in more.items():
        maps[name]["metadata"]["annotations"] = marks
    sha = fake.host.commit({f"shop/{name}.yaml": json.dumps(body) for name, body in maps.items()})
    fake.host.push(sha)
    return sha
