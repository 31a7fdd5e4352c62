"""An author who guesses at the handler's git token, on a real Gitea: he reads what he wrote, whether it is right or wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.giteahost import GiteaHost
from tests.e2e.documents import config_map
from tests.e2e.gitea_shop import GiteaShop
from tests.kubectl import Kubectl

USER = "x-access-token"


@pytest.fixture
def signed_in(gitea: GiteaHost, kubectl: Kubectl, tmp_path: Path) -> Iterator[GiteaShop]:
    """A shop whose git login is its robot's token, deployed once."""
    shop = GiteaShop(gitea, kubectl, tmp_path)
    auth = {"basic": {"username": USER, "password": {"file": str(tmp_path / "token")}}}
    feedback = {"host": "gitea", "token": {"file": str(tmp_path / "token")}, "pullRequests": True}
    shop.target(repository={"url": gitea.clone_url(shop.repository), "feedback": feedback, "auth": auth})
    shop.serve()
    shop.ends(shop.push(config_map(shop.name, "a")), "success")
    yield shop
    shop.close()


def wrong(text: str) -> str:
    """Return a text of the same length that begins otherwise."""
    return "".join("0123456789abcdef"[(int(digit, 16) + 1) % 16] for digit in text)


@pytest.mark.parametrize("beginning", [0, 6, 39])
def test_sixteen_guesses_at_the_next_digit_look_alike_in_the_plan(signed_in: GiteaShop, beginning: int) -> None:
    known = signed_in.robot.token[:beginning]
    guesses = {f"k{digit}": f"{USER}:{known}{digit}" for digit in "0123456789abcdef"}
    signed_in.branch("guess", config_map(signed_in.name, "a", guesses))
    number = signed_in.gitea.open_pull_request(signed_in.repository, signed_in.ada, "guess")
    said = signed_in.planned(number, "~ change ConfigMap")
    assert [key for key, guess in guesses.items() if f"data.{key}: (not shown) → {guess}\n" not in said] == []
    assert "***" not in said


@pytest.mark.parametrize("length", [1, 12, 40])
def test_a_guess_that_a_push_fails_by_looks_alike_in_its_status_and_record(signed_in: GiteaShop, length: int) -> None:
    token, seen = signed_in.robot.token[:length], []
    for guess in (f"{USER}:{token}", f"{USER}:{wrong(token)}"):
        commit = signed_in.push({**config_map(signed_in.name, "a"), "kind": guess})
        text = signed_in.ends(commit, "failure")
        message = signed_in.record().status.message
        assert guess in message, "it is shown as it was written"
        seen.append([re.sub(rf"{USER}:[0-9a-f]+", "…", each) for each in (text, message.replace(commit, ""))])
    assert seen[0] == seen[1]
