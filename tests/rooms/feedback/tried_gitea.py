"""A real Gitea that the row of `handler.feedback.git_hosts` is tried against, as the made-up hosts are: one repository, and its people."""

from __future__ import annotations

import secrets
from functools import cached_property
from itertools import count
from pathlib import Path

from infra.giteahost import Account, GiteaHost
from infra.gitwork import Work
from tests.rooms.feedback.tried_hosts import Proposal, Right, TriedHost

ROBOT = ("write:repository", "write:issue")
"""What a token of ours needs."""


class TriedGitea(TriedHost):
    """A private repository of its own on the session's Gitea. `robot`: whose token is ours, an administrator of the repository."""

    name = "gitea"
    states = ("pending", "success", "failure", "failure", "error", "success")

    def __init__(self, gitea: GiteaHost, place: Path) -> None:
        self.gitea, self.place = gitea, place
        self.suffix = secrets.token_hex(4)
        self.people = {right: gitea.user(f"{right}-{self.suffix}") for right in Right}
        self.owner = self.people[Right.OWNER]
        self.repository = gitea.repository(self.owner.name, "shop", private=True)
        for right, permission in ((Right.READER, "read"), (Right.WRITER, "write")):
            gitea.collaborator(self.repository, self.people[right], permission)
        self.robot = gitea.user(f"robot-{self.suffix}", *ROBOT)
        gitea.collaborator(self.repository, self.robot, "admin")
        self.token = self.robot.token
        self.url = gitea.clone_url(self.repository)
        self._numbers = count(1)

    @cached_property
    def work(self) -> Work:
        """The owner's working clone."""
        return self.gitea.work(self.repository, self.owner, self.place / "work")

    def commit(self) -> str:
        made = self._next("main")
        self.push("main:main")
        return made

    def branch(self, name: str, start: str = "main") -> str:
        """Make a branch with a commit of its own; return the commit. It isn't pushed."""
        self.work.git("checkout", "-q", "-b", name, start)
        return self._next(name)

    def _next(self, branch: str) -> str:
        """Make a commit on a branch."""
        number = next(self._numbers)
        self.work.git("checkout", "-q", branch)
        return self.work.write(f"{branch}/{number}", str(number)).commit(f"Commit {number}")

    def push(self, *refs: str, account: Account | None = None) -> None:
        """Push branches (`<here>:<there>`) at once, by force, into the repository, or as this person into a fork."""
        remote = self.gitea.clone_url(f"{account.name}/shop", account) if account else "origin"
        self.work.git("push", "-q", "--force", remote, *refs)

    def shown(self, commit: str, context: str) -> tuple[str, str, str]:
        newest = [each for each in self.gitea.statuses(self.repository, commit) if each["context"] == context][-1]
        return newest["status"], newest["description"], newest["target_url"]

    def propose(self, right: Right = Right.WRITER, *, fork: bool = False, draft: bool = False) -> Proposal:
        person, name = self.people[right], f"idea-{next(self._numbers)}"
        merge_base, head = self._next("main"), self.branch(name)
        self.push("main:main", "main:release/1.x", *(() if fork else (f"{name}:{name}",)))
        if fork:
            self._fork(person)
            self.push(f"{name}:{name}", account=person)
        source = f"{person.name}:{name}" if fork else name
        title = "WIP: a change" if draft else "A change"
        number = self.gitea.open_pull_request(self.repository, person, source, "release/1.x", title=title)
        base = self._next("main")
        self.push("main:main", "main:release/1.x")
        return Proposal(number, head, base, merge_base)

    def _fork(self, person: Account) -> None:
        """Let a person have a fork, unless there is one."""
        if self.gitea.ask("GET", f"/repos/{person.name}/shop").status == 404:
            self.gitea.fork(self.repository, person)

    def close(self, number: int) -> None:
        self.gitea.edit_pull_request(self.repository, number, state="closed")

    def forget_fork(self, number: int) -> None:
        name = self.gitea.pull_request(self.repository, number)["head"]["repo"]["full_name"]
        self.gitea.api("DELETE", f"/repos/{name}")

    def say(self, number: int, right: Right, text: str) -> str:
        return str(self.gitea.comment(self.repository, number, text, self.people[right]))

    def delete(self, number: int, comment: str) -> None:
        self.gitea.delete_comment(self.repository, int(comment))

    def person(self, right: Right) -> str:
        return self.people[right].name

    def unrelated(self) -> str:
        name = f"lone-{next(self._numbers)}"
        self.work.git("checkout", "-q", "--orphan", name)
        made = self.work.write(f"lone/{name}", name).commit("Alone")
        self.push(f"{name}:{name}")
        return made

    def reading(self) -> str:
        return self.gitea.token(self.people[Right.READER], "read:repository", "read:issue")
