"""A shop whose repository is on a real Gitea: it sends webhooks to `anneal serve`, and shows the statuses that come back."""

from __future__ import annotations

import json
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handler.app.record_summaries import TOOLING
from handler.model.names import identity_of
from handler.state.configmap import decode
from handler.state.record import State
from infra.giteahost import Account, GiteaHost
from infra.gitwork import Work
from tests.e2e.documents import Document
from tests.e2e.serve_process import SECRET, Serving
from tests.kubectl import Kubectl
from tests.patience import until

STATES = "anneal-e2e"


@dataclass
class GiteaShop:
    """One repository, and targets of it, each a path and a namespace of its name. `token`: file with what posts statuses."""

    gitea: GiteaHost
    kubectl: Kubectl
    place: Path
    name: str = field(default_factory=lambda: f"g-{secrets.token_hex(4)}")
    settings: dict[str, Any] = field(default_factory=dict)
    feedback: dict[str, Any] = field(default_factory=dict)
    ada: Account = field(init=False)
    robot: Account = field(init=False)
    repository: str = field(init=False)
    work: Work = field(init=False)
    serving: Serving = field(init=False)
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ada = self.gitea.user(f"{self.name}-ada")
        self.repository = self.gitea.repository(self.ada.name, self.name)
        self.work = self.gitea.work(self.repository, self.ada, self.place / "work")
        self.robot = self.gitea.user(f"{self.name}-robot", "write:repository", "write:issue", "read:user")
        self.gitea.collaborator(self.repository, self.robot, "admin")  # else it may not ask for the rights of others
        (self.place / "token").write_text(self.robot.token)
        self.serving = Serving(self.place / "anneal.json", self.place / "log")

    def target(self, name: str = "", **settings: Any) -> str:
        """Add a target of the path and namespace of its name, the repository's by default; return the name."""
        name = name or self.name
        self.kubectl.create_namespace(name)
        self.targets[name] = {"name": name, "namespaces": [name], "path": name} | settings
        return name

    def serve(self) -> GiteaShop:
        """Serve these targets, and let Gitea send its webhooks there."""
        self.configure()
        self.serving.start().ready()
        self.gitea.webhook(self.repository, f"{self.serving.url}/webhooks/gitea", SECRET, ("push", "pull_request", "issue_comment"))
        return self

    def configure(self) -> None:
        """Write the configuration."""
        feedback = {"host": "gitea", "token": {"file": str(self.place / "token")}, **self.feedback}
        repository = {"url": self.gitea.clone_url(self.repository), "feedback": feedback}
        document = {
            "apiVersion": "anneal.dev/v1alpha1",
            "kind": "Config",
            "stateNamespace": STATES,
            "interval": "1h",
            "driftInterval": "8760h",
            "webhooks": {"gitea": {"secrets": [{"env": "HOOK"}]}},
            "replay": {"tokens": [{"name": "ops", "secret": {"env": "OPS"}, "targets": ["*"], "may": ["replay", "approve", "read"]}]},
            "defaults": {"repository": repository, "cluster": {"kubeconfig": {"file": str(self.kubectl.kubeconfig)}}},
            **self.settings,
            "targets": list(self.targets.values()),
        }
        self.serving.config.write_text(json.dumps(document))

    def close(self) -> None:
        self.serving.stop()
        self.kubectl.leave_namespaces(*self.targets)

    def push(self, *documents: Document, target: str = "") -> str:
        """Make these documents the whole of a target's path, commit and push; return the commit."""
        self.declare(*documents, target=target)
        sha = self.work.commit(f"{len(documents)} documents")
        self.work.push()
        return sha

    def declare(self, *documents: Document, target: str = "") -> None:
        """Make these documents the whole of a target's path."""
        path = target or self.name
        shutil.rmtree(self.work.directory / path, ignore_errors=True)
        for document in documents:
            self.work.write(f"{path}/{str(identity_of(document)).replace('/', '-')}.yaml", json.dumps(document, indent=1))

    def owes(self) -> list[str]:
        """Return the commits whose ends the main target's record owes."""
        return [each.commit for each in self.record().commit_statuses if each.is_owed]

    def shown(self, commit: str, context: str = "") -> list[tuple[str, str]]:
        """Return what Gitea shows of a commit under a context, the main target's by default: states and texts, the first first."""
        context = context or f"anneal/default/{self.name}"
        found = self.gitea.statuses(self.repository, commit)
        return [(each["status"], each["description"]) for each in found if each["context"] == context]

    def ends(self, commit: str, state: str, context: str = "") -> str:
        """Wait until the newest status of a commit is in a state; return its text."""
        until(lambda: [each[0] for each in self.shown(commit, context)][-1:] == [state], lambda: f"{self.shown(commit, context)}")
        return self.shown(commit, context)[-1][1]

    def branch(self, name: str, *documents: Document, target: str = "") -> str:
        """Make these documents the whole of a target's path on a branch of what main was last, and push it; return the commit."""
        self.work.git("checkout", "-q", "-B", name, "main")
        self.declare(*documents, target=target)
        return self.pushed(name)

    def pushed(self, branch: str) -> str:
        """Commit and push the work tree as a branch, go back to main, and return the commit."""
        sha = self.work.commit(f"On {branch}")
        self.work.git("push", "-q", "-f", "origin", branch)
        self.work.git("checkout", "-q", "main")
        return sha

    def comments(self, number: int) -> list[str]:
        """Return the robot's comments on a pull request, the oldest first."""
        return [each["body"] for each in self.gitea.comments(self.repository, number) if each["user"]["login"] == self.robot.name]

    def planned(self, number: int, *words: str) -> str:
        """Wait until the newest plan on a pull request holds all these words; return it."""
        until(lambda: self.comments(number) and all(word in self.comments(number)[-1] for word in words), lambda: self.told(number))
        return self.comments(number)[-1]

    def told(self, number: int) -> str:
        """Return what a failed wait shows."""
        return f"{self.comments(number)}\n{self.serving.log.read_text()[-3000:]}"

    def record(self, name: str = "") -> State:
        """Return a target's record."""
        target = f"anneal-{name or self.name}"
        body = self.kubectl.ask("GET", f"/api/v1/namespaces/{STATES}/configmaps/{target}")
        return decode(body, STATES, name or self.name, TOOLING) if body else State(name or self.name, "default", "")
