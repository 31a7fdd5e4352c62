"""A repository with a pull request, planned against a cluster, a git and a host in memory."""

from __future__ import annotations

import base64
import hashlib
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import SecretRef
from handler.config.settings import Settings, Target
from handler.model.commit_status import StatusState
from handler.model.event import Job
from handler.model.pull_request import HostComment, PullRequest
from handler.model.result import Outcome, Result
from tests.fakes.apiserver import ApiServer
from tests.fakes.engine import SHOP, cluster, engine
from tests.fakes.git_host import GitHost
from tests.fakes.pull_request_host import PullRequestHost

FEEDBACK = FeedbackSettings(status=False, pull_requests=True, host="gitea", token=SecretRef(env="PATH"))
REPOSITORY = replace(SHOP, feedback=FEEDBACK)
CANARY, DRIFT = "canary7f3a9ce1d255b0", "canary0b552d1ec9a3f7"
COMMAND = HostComment("6", "ada", "/anneal plan")


def target(name: str = "shop", **parts: Any) -> Target:
    return Target(name, parts.pop("repository", REPOSITORY), (name,), **({"path": name} | parts))


def objects(value: str, name: str = "shop") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: {name}}}\ndata: {{key: '{value}'}}\n"


@dataclass
class Pulls:
    """A repository with one pull request of number 12, whose head may be anything, into `main`."""

    server: ApiServer
    settings: Settings
    git: GitHost = field(default_factory=GitHost)
    api: PullRequestHost = field(default_factory=lambda: PullRequestHost(lambda base, head: base))
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.handler = self.made()
        self.git.push(self.git.commit({f"{each.path}/web.yaml": objects("1", each.name) for each in self.settings.targets}))

    @classmethod
    def deployed(cls) -> Pulls:
        """Return one whose branch is deployed, and whose pull request changes one field."""
        found = cls(cluster(), Settings(targets=(target(),)))
        found.deploy()
        found.proposes({"shop/web.yaml": objects("2")})
        return found

    def made(self) -> Handler:
        """Return another server's handler of the same repository."""
        made = engine(self.server, self.git, self.settings, fetched=True)
        made.git_api = lambda target: self.api  # type: ignore[method-assign]  # the host is in memory
        return made

    def deploy(self) -> None:
        for each in self.settings.targets:
            result = self.handler.run(Job(each.name, "tick"))
            assert result.outcome is Outcome.APPLIED, result

    def proposes(self, files: dict[str, str], **facts: Any) -> str:
        """Let the pull request have a head of these files beside those of the branch."""
        head = self.git.commit({**self.git.commits[self.git.head], **files})
        self.api.found[12] = replace(PullRequest(12, head, "main", "bob"), **facts)
        return head

    def run(self, handler: Handler | None = None, **job: Any) -> Result:
        return (handler or self.handler).run(Job(**({"target": "shop~12", "trigger": "pull-request"} | job)), self.stop)

    @property
    def shown(self) -> list[tuple[StatusState, str]]:
        return [(each.state, each.text) for each in self.api.statuses]


def forms(value: str) -> set[str]:
    """How a template may write a value."""
    encoded = {base64.b64encode(value.encode()).decode(), base64.b32encode(value.encode()).decode()}
    digests = {hashlib.sha256(value.encode()).hexdigest(), hashlib.sha1(value.encode()).hexdigest()}
    return {value, value[::-1], value.upper(), value[:10], value[10:], "-".join(value), *encoded, *digests}


def assert_nothing_shown(pulls: Pulls, caplog: pytest.LogCaptureFixture, *values: str) -> None:
    logged = [f"{each.getMessage()} {each.__dict__}" for each in caplog.records]
    said = [*(each.text for each in pulls.api.comments.values()), *(each.text for each in pulls.api.statuses), *logged]
    assert not {(form, text[:200]) for value in values for form in forms(value) for text in said if form in text}
