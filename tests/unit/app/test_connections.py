"""Parts that are shared between threads: what one asks for it gets, though another lets go of it at that moment."""

from __future__ import annotations

from typing import Any

import pytest

from handler.app.connections import Connections, Options
from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import Repository, SecretRef, Verify
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.feedback.git_hosts.gitea import Gitea
from handler.feedback.git_hosts.github import GitHub
from handler.model.errors import ConfigInvalid


class Forgetful(dict[Any, Any]):
    """What was made, each part of which is let go of as soon as it is kept."""

    def setdefault(self, key: Any, default: Any = None) -> Any:
        super().setdefault(key, default)
        return self.pop(key)


class Forgotten(dict[Any, Any]):
    """What was made, each part of which is let go of between two questions for it."""

    def __contains__(self, key: object) -> bool:
        self.pop(key, None)
        return True


def connections() -> Connections:
    return Connections(Settings(()), Secrets(), {}, Options())


def test_a_part_that_is_let_go_of_while_it_is_made_is_returned() -> None:
    ways = connections()
    ways._made = Forgetful()
    assert ways._once(("digest", "shop.ns.a"), lambda: "made") == "made"


def test_a_part_that_is_let_go_of_while_it_is_asked_for_is_made_again() -> None:
    ways = connections()
    ways._made = Forgotten({("digest", "shop.ns.a"): "before"})
    assert ways._once(("digest", "shop.ns.a"), lambda: "made") in ("before", "made")


def test_a_part_is_made_once_though_it_is_none() -> None:
    ways, made = connections(), list[None]()
    for _ in range(2):
        assert ways._once(("uid",), lambda: made.append(None)) is None
    assert made == [None]


def test_repositories_of_one_host_share_the_distance_between_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    ways, paces = connections(), list[float]()
    monkeypatch.setattr("handler.source.host_api.WritePace", paces.append)
    for name in ("github.com/acme/shop", "github.com/acme/cart", "gitea.example.com/acme/shop"):
        repository = Repository(f"https://{name}.git", feedback=FeedbackSettings(token=SecretRef(env="PATH")))
        ways.git_api(Target("shop", repository, ("shop",)))
    assert paces == [GitHub.pause, Gitea.pause]


def test_what_requires_signatures_is_never_read_from_a_directory() -> None:
    strict = Target("shop", Repository("https://git.example.com/shop.git"), ("shop",), verify=Verify(ssh=("ssh-ed25519 AAAA",)))
    given: Any = object()
    ways = Connections(Settings((strict,)), Secrets(), {}, Options(sources={"shop": given}))
    with pytest.raises(ConfigInvalid, match="a directory carries no signature"):
        ways.source(strict)
