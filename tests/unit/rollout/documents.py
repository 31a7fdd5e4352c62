"""Rollouts of both dialects, and the tables they are read with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.errors import ManifestInvalid
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.rollout import Rollout
from handler.rollout.interfaces import CheckType, Options, Probe, Scene, SpecError
from handler.rollout.spec import read
from handler.rollout.spec_fields import Fields, type_of

PLACE = "deploy/rollout.yaml:1"
KEYS = {
    "grafana/deployment.json": Identity("apps", "Deployment", "default", "grafana"),
    "job.json": Identity("batch", "Job", "shop", "migrate"),
    "job.json!1": Identity("", "Secret", "shop", "migrate"),
    "deployment": Identity("apps", "Deployment", "shop", "api"),
}
SEED = """
apiVersion: workflow.kubernetes.io/v1alpha1
kind: Rollout
metadata:
  name: grafana-rollout-0
spec:
  groups:
  - steps:
    - object: "grafana/deployment.json"
      action: "CreateOrUpdate"
"""
OLD = """
apiVersion: workflow.kubernetes.io/v1alpha1
kind: Rollout
metadata: {name: jsonnet}
spec:
  groups:
  - name: Rollout Grafana
    steps:
    - object: deployment
      action: CreateOrUpdate
      success:
      - fieldComparisons:
        - {name: Generation correct, path: '{.metadata.generation}', value: {path: '{.status.observedGeneration}'}}
        - {name: No replica unavailable, path: '{.status.unavailableReplicas}', default: 0, value: {static: 0}}
    - object: job.json
      action: CreateIfNotExist
"""
NEW = """
apiVersion: workflow.kubernetes.io/v1alpha1
kind: Rollout
metadata: {name: api}
spec:
  parallel: false
  groups:
  - name: migrate
    parallel: true
    steps:
    - name: migrate-db
      object: job.json
      action: CreateOrUpdate
      continueOnError: true
      success:
      - fieldComparisons:
          expectedValues: [{name: done, path: '{.status.succeeded}', default: 0, value: {staticInt64: 1}}]
          timeout: 1h
          failure:
          - {checkName: JobOOMKilled}
        failure:
        - {checkName: slow}
        name: slow
      failure:
      - fieldComparisons:
          expectedValues: [{name: failed, path: '{.status.failed}', default: 0, value: {staticInt64: 1}}]
  - steps:
    - {object: "/grafana/deployment.json!0", action: CreateOrUpdate}
    - {object: ./job.json!1, action: DeleteIfExist}
"""


class Comparisons:
    """A check that keeps what it is given, if it is a list or a mapping."""

    def read(self, raw: Any, field: str) -> Options:
        if not isinstance(raw, dict | list):
            raise SpecError.of(field, f"is {type_of(raw)}")
        return {"given": raw}

    def begin(self, options: Options, scene: Scene) -> Probe:
        raise NotImplementedError


class Named:
    """A check with one required option, and one that a name alone is enough for."""

    def __init__(self, required: bool) -> None:
        self.required = required

    def read(self, raw: Any, field: str) -> Options:
        fields = Fields(raw, field, ("url",))
        url = fields.text("url", required=self.required)
        fields.done()
        return {"url": url}

    def begin(self, options: Options, scene: Scene) -> Probe:
        raise NotImplementedError


CHECKS: Mapping[str, CheckType] = {
    "fieldComparisons": Comparisons(),
    "prometheus": Named(required=True),
    "JobOOMKilled": Named(required=False),
}


KEYED = {key: (identity,) for key, identity in KEYS.items()}
LISTED = {**KEYED, "list.json": (KEYS["job.json"], KEYS["job.json!1"])}


def spec(text: str, **changes: Any) -> Rollout:
    return read(Manifest.of(yaml.safe_load(text) | changes, PLACE), LISTED, ACTIONS, CHECKS)


def groups(*steps: Mapping[str, Any]) -> dict[str, Any]:
    return {"groups": [{"steps": list(steps)}]}


def mistakes(**changes: Any) -> list[str]:
    with pytest.raises(ManifestInvalid) as refused:
        spec(SEED, **changes)
    return [str(problem) for problem in refused.value.problems]
