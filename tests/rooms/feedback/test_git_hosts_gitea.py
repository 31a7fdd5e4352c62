"""What is Gitea's alone, against a real one: merge bases by what a head has alone, heads on no branch, teams, who may ask."""

from __future__ import annotations

import secrets
from itertools import product

import pytest

from handler.model.errors import AccessDenied
from handler.model.host_answer import HostRefusal
from infra.giteahost import Account, GiteaHost
from tests.rooms.feedback.tried_gitea import ROBOT, TriedGitea
from tests.rooms.feedback.tried_hosts import Right, way


def merged(tried: TriedGitea, branch: str, other: str) -> str:
    """Merge another branch into one; return the commit."""
    tried.work.git("checkout", "-q", branch)
    tried.work.git("merge", "-q", "--no-ff", "--no-edit", other)
    return tried.work.head()


def test_a_merge_base_is_what_git_says(tried_gitea: TriedGitea) -> None:
    tried, api = tried_gitea, tried_gitea.api()
    name = f"long-{secrets.token_hex(3)}"
    commits = [tried.commit(), tried.branch(name)]
    for _ in range(3):
        commits += [tried._next("main"), merged(tried, name, "main"), tried._next(name)]
    commits += [merged(tried, "main", name), tried._next("main"), tried.branch(f"{name}-2", commits[2])]
    tried.push("main:main", f"{name}:{name}", f"{name}-2:{name}-2")
    for base, head in product(commits, repeat=2):
        assert api.merge_base(base, head) == tried.work.git("merge-base", base, head), (commits.index(base), commits.index(head))


def test_of_two_merge_bases_it_is_one(tried_gitea: TriedGitea) -> None:
    tried, name = tried_gitea, f"cross-{secrets.token_hex(3)}"
    start = tried.commit()
    one, other = tried.branch(f"{name}-1", start), tried.branch(f"{name}-2", start)
    tried.work.git("branch", f"{name}-kept", other)
    left = merged(tried, f"{name}-2", f"{name}-1")
    right = merged(tried, f"{name}-1", f"{name}-kept")
    tried.push(f"{name}-1:{name}-1", f"{name}-2:{name}-2")
    assert tried.api().merge_base(left, right) in {one, other}


def test_a_head_of_many_commits_has_its_merge_base(tried_gitea: TriedGitea) -> None:
    tried, name = tried_gitea, f"many-{secrets.token_hex(3)}"
    start = tried.commit()
    tried.branch(name)
    for _ in range(60):  # more than a page has
        head = tried._next(name)
    tried.push(f"{name}:{name}")
    assert tried.api().merge_base(tried.commit(), head) == start


def test_a_head_after_a_push_by_force_parts_where_it_parts_now(tried_gitea: TriedGitea) -> None:
    tried, api = tried_gitea, tried_gitea.api()
    proposal = tried.propose()
    name = tried.gitea.pull_request(tried.repository, proposal.number)["head"]["ref"]
    tried.work.git("checkout", "-q", "-B", name, proposal.base)
    head = tried._next(name)
    tried.push(f"{name}:{name}")
    found = api.pull_request(proposal.number)
    assert found.head == head
    assert api.merge_base(proposal.base, found.head) == proposal.base


def test_a_head_on_no_branch_is_taken_for_a_forks(tried_gitea: TriedGitea) -> None:
    tried, reader = tried_gitea, tried_gitea.people[Right.READER]
    tried.commit()
    name = f"topic-{secrets.token_hex(3)}"
    head = tried.branch(name)
    place = tried.gitea.clone_url(tried.repository, reader)
    tried.work.git("push", "-q", "-o", f"topic={name}", "-o", "title=A change", place, f"{name}:refs/for/main")
    (number,) = [each["number"] for each in tried.gitea.rows(f"/repos/{tried.repository}/pulls") if each["head"]["sha"] == head]
    found = tried.api().pull_request(number)
    assert (found.head, found.author, found.is_fork) == (head, reader.name, True)


def test_a_pull_request_whose_branch_is_gone_is_the_repositorys_still(tried_gitea: TriedGitea) -> None:
    tried, proposal = tried_gitea, tried_gitea.propose()
    name = tried.gitea.pull_request(tried.repository, proposal.number)["head"]["ref"]
    tried.work.git("push", "-q", "origin", f":refs/heads/{name}")
    found = tried.api().pull_request(proposal.number)
    assert (found.head, found.is_fork) == (proposal.head, False)


def test_an_account_that_only_writes_cannot_ask_who_may(tried_gitea: TriedGitea) -> None:
    tried, writer = tried_gitea, tried_gitea.people[Right.WRITER]
    with pytest.raises(AccessDenied, match="be an administrator's of the repository: others can't ask who may push"):
        tried.api(tried.gitea.token(writer, *ROBOT)).may_write(tried.person(Right.READER))


def test_a_locked_conversation_is_no_lack_of_the_token(tried_gitea: TriedGitea) -> None:
    tried, number = tried_gitea, tried_gitea.propose().number
    tried.gitea.api("PUT", f"/repos/{tried.repository}/issues/{number}/lock", {"lock_reason": "too heated"}, tried.owner.token)
    reader = tried.gitea.token(tried.people[Right.READER], *ROBOT)
    with pytest.raises(HostRefusal, match="unlock the conversation"):
        tried.api(reader).add_comment(number, "A plan")
    assert tried.api().add_comment(number, "A plan").text == "A plan"


class Organization:
    """An organization with a repository, and a team for each right of one of its units."""

    def __init__(self, gitea: GiteaHost) -> None:
        self.gitea, self.suffix = gitea, secrets.token_hex(4)
        self.name = f"org-{self.suffix}"
        self.owner = gitea.user(f"boss-{self.suffix}")
        gitea.organization(self.name, self.owner)
        self.repository = gitea.repository(self.name, "shop", private=True)

    def member(self, name: str, **team: object) -> Account:
        """Create a person in a team of their own."""
        made = self.gitea.user(f"{name}-{self.suffix}")
        new = {"name": name, "permission": "read", "includes_all_repositories": True, **team}
        number = self.gitea.api("POST", f"/orgs/{self.name}/teams", new)["id"]
        self.gitea.api("PUT", f"/teams/{number}/members/{made.name}")
        return made

    def may_write(self, token: str, *people: Account) -> list[bool]:
        """Return which of these people may push, as a token finds it."""
        api = way("gitea", self.gitea.clone_url(self.repository), token)
        return [api.may_write(each.name) for each in people]


def test_members_of_a_team_may_push_as_far_as_the_token_may_know_it(gitea: GiteaHost) -> None:
    org = Organization(gitea)
    coder = org.member("coder", units_map={"repo.code": "write", "repo.pulls": "read"})
    triage = org.member("triage", units_map={"repo.code": "read", "repo.issues": "write"})
    admin = org.member("admin", permission="admin")
    people = (coder, triage, admin, org.owner, gitea.user(f"stranger-{org.suffix}"))
    knows = gitea.token(org.owner, *ROBOT, "read:organization")
    assert org.may_write(knows, *people) == [True, False, True, True, False]
    assert org.may_write(gitea.token(org.owner, *ROBOT), *people) == [False, False, True, True, False]
    outside = gitea.user(f"robot-{org.suffix}", *ROBOT, "read:organization")
    gitea.collaborator(org.repository, outside, "admin")
    assert org.may_write(outside.token, *people) == [False, False, True, True, False]
