"""What `anneal adopt` takes as owners, and what it says of a tool that it doesn't know. No cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from handler.cli.group import USAGE, anneal

pytestmark = pytest.mark.slow

CONFIG = """apiVersion: anneal.dev/v1alpha1
kind: Config
targets: [{name: shop, repository: {url: https://git.example.com/acme/shop.git}, namespaces: [shop]}]
"""
SET = "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1"
UNASKED = "there is no terminal to ask on, so it needs -y: anneal"


@pytest.mark.parametrize(
    ("owners", "said"),
    [
        (["fluxx"], "--from fluxx: no such tool; did you mean flux?"),
        (["flux2"], "did you mean flux?"),
        (["fluxcd"], "did you mean flux?"),
        (["argo"], "did you mean argocd?"),
        (["Argo CD"], "did you mean argocd?"),
        (["HELM"], "did you mean helm?"),
        (["kubectl"], "--from kubectl: no such tool; every run takes over what it has applied"),
        (["applyset-1"], "--from applyset-1: no such tool; known are flux, argocd"),
        (["helm", "flux", "helm"], f"{UNASKED} -c {{config}} adopt shop --from flux --from helm -y"),
        ([f"{SET},flux"], f"{UNASKED} -c {{config}} adopt shop --from flux --from {SET} -y"),
    ],
)
def test_owners_are_tools_and_ids_and_a_mistyped_one_is_guessed(owners: list[str], said: str, tmp_path: Path) -> None:
    config = tmp_path / "anneal.yaml"
    config.write_text(CONFIG)
    result = CliRunner().invoke(anneal, ["-c", str(config), "adopt", "shop", *(word for each in owners for word in ("--from", each))])
    assert result.exit_code == USAGE
    assert said.format(config=config) in result.stderr, result.output


def test_what_is_held_is_allowed_with_the_owners_that_it_was_held_with(tmp_path: Path) -> None:
    config = tmp_path / "anneal.yaml"
    config.write_text(CONFIG)
    result = CliRunner().invoke(anneal, ["-c", str(config), "adopt", "shop", "--approve", "58eb1fd1ec42"])
    assert (result.exit_code, "pass the --from that it was held with, too" in result.stderr) == (USAGE, True), result.output
