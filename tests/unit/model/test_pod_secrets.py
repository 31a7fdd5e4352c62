"""Which Secrets the containers of a pod can read."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.pod_secrets import mounted_secrets


@pytest.mark.parametrize(
    "spec", [None, [], "x", {"volumes": [{"secret": None}, {"secret": {"secretName": 7}}], "env": [{"secretRef": "x"}]}]
)
def test_a_pod_spec_of_any_shape_is_read(spec: Any) -> None:
    assert mounted_secrets(spec) == frozenset()
