"""A mistake of a Rollout names the line of its field, wherever it is found."""

from __future__ import annotations

import json

from handler.model.result import Outcome
from tests.unit.engine.in_memory_cluster import InMemoryCluster, config_map

HEAD = "apiVersion: workflow.kubernetes.io/v1alpha1\nkind: Rollout\nmetadata: {name: r}\n"


def refused(rollout: str) -> list[tuple[str, str]]:
    """Return what is wrong with a Rollout over the ConfigMaps `a` and `b`: where, and of what."""
    fake = InMemoryCluster()
    files = {f"shop/{name}.yaml": json.dumps(config_map(name, "1")) for name in "ab"}
    fake.host.push(fake.host.commit({**files, "rollout.yaml": rollout}))
    result = fake.run()
    assert result.outcome is Outcome.FAILED
    return [(problem.place, problem.subject) for problem in result.problems]


def test_each_mistake_of_a_rollout_names_its_own_line() -> None:
    body = """spec:
  parallel: perhaps
  groups:
  - name: first
    steps:
    - object: a.yaml
      action: Apply
    - action: CreateOrUpdate
      success:
      - fieldComparisons:
          timeout: soon
      - healthy: {}
        prometheus: {query: up}
  - {steps: []}
"""
    where = "spec.groups[0].steps"
    assert {field.removeprefix(where): place for place, field in refused(HEAD + body)} == {
        "spec.parallel": "rollout.yaml:5",
        "[0].action": "rollout.yaml:10",
        "[1].object": "rollout.yaml:11",
        "[1].success[0].fieldComparisons.timeout": "rollout.yaml:14",
        "[1].success[1].prometheus": "rollout.yaml:16",
        "spec.groups[1].steps": "rollout.yaml:17",
    }


def test_a_rollout_that_says_nothing_names_the_line_where_it_begins() -> None:
    assert refused("# nothing\n\n" + HEAD) == [("rollout.yaml:3", "spec")]


def test_what_cannot_go_by_canary_names_the_line_of_its_step() -> None:
    body = """spec:
  groups:
  - steps:
    - {object: a.yaml, action: CreateOrUpdate}
    - object: b.yaml
      action: Canary
      continueOnError: true
"""
    assert refused(HEAD + body) == [("rollout.yaml:9", "ConfigMap/shop/b"), ("rollout.yaml:10", "ConfigMap/shop/b")]
