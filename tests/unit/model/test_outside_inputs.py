"""What isn't git and is asked for a render."""

from __future__ import annotations

import pytest

from handler.model.outside_inputs import ClusterFacts


@pytest.mark.parametrize("version", ["", "latest", "--post-renderer=/bin/sh", "v1.36.3 --debug", "v1.36\n"])
def test_what_a_server_says_that_is_no_version_is_none(version: str) -> None:
    assert ClusterFacts.of(version, []).version == ""


@pytest.mark.parametrize("name", ["", "apps/v1,batch/v1", "--debug x", "a\nb", "{{ .Values }}"])
def test_what_a_server_says_that_is_no_kind_is_left_out(name: str) -> None:
    kept = ["v1", "apps/v1", "apps/v1/Deployment"]
    assert ClusterFacts.of("v1.36.3+k3s1", [*kept, name]) == ClusterFacts("v1.36.3+k3s1", tuple(kept))
