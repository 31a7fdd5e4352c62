"""What is one host's alone: limits, versions, quick actions, forks, who may ask who may push."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from handler.app.git_host_apis import git_host_api
from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import GitHubAppAuth, Repository, SecretRef
from handler.config.secrets import Secret, Secrets
from handler.feedback.git_hosts import GitHostApi
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.errors import AccessDenied, GitUnavailable
from handler.model.host_answer import HostBusy, HostRefusal
from handler.source.git_host import SharedConnections
from tests.fakes.git_hosts.azuredevops import AzureDevOps
from tests.fakes.git_hosts.bitbucket import Bitbucket
from tests.fakes.git_hosts.bitbucketserver import BitbucketServer
from tests.fakes.git_hosts.exchange import Answer
from tests.fakes.git_hosts.github import GitHub
from tests.fakes.git_hosts.gitlab import GitLab
from tests.fakes.git_hosts.served_host import ServedHost
from tests.rooms.feedback.tried_hosts import MadeUp, Right, made_up
from tests.rooms.source.github_api import APP, INSTALLATION, GitHubApi


def status(commit: str, state: StatusState = StatusState.SUCCESS, text: str = "3 created", link: str = "") -> CommitStatus:
    return CommitStatus(commit, "anneal/blue/shop", state, text, link)


def opened(name: str) -> Callable[[], Iterator[MadeUp]]:
    @pytest.fixture(name=f"on_{name}")
    def one() -> Iterator[MadeUp]:
        yield from made_up(name)

    return one


on_github, on_gitlab, on_bitbucket, on_bitbucketserver, on_azuredevops = map(
    opened, ("github", "gitlab", "bitbucket", "bitbucketserver", "azuredevops")
)


def fails(host: ServedHost, times: int, answer: Answer) -> None:
    """Let the next changes of comments be answered like this."""
    left = [times]
    respond = host.respond

    def once(request: Any) -> Answer:
        if request.method in ("PUT", "PATCH") and left[0]:
            left[0] -= 1
            host.requests.append(request)
            return answer
        return respond(request)

    host.respond = once  # type: ignore[method-assign]  # for one test


# --- GitHub


def test_github_takes_a_thousand_statuses_of_a_context(on_github: MadeUp) -> None:
    api, commit = on_github.api(), on_github.commit()
    api.post(status(commit))
    on_github.host.statuses[commit] *= 1000
    with pytest.raises(HostRefusal, match="the API answered 422") as refused:
        api.post(status(commit))
    assert refused.value.status == 422
    assert api.shows(status(commit))


def test_githubs_secondary_limit_is_a_pause(on_github: MadeUp) -> None:
    host, now = on_github.host, [0.0]
    api, number, commit = on_github.api(), on_github.propose().number, on_github.commit()
    host.writes_a_minute, host.clock = 80, lambda: now[0]
    for _ in range(80):
        api.post(status(commit))
    now[0] = 20.0
    with pytest.raises(HostBusy, match="the API answered 403; again in 41 s") as busy:
        api.add_comment(number, "A plan")
    assert busy.value.pause == 41
    assert api.shows(status(commit))


def test_a_locked_conversation_is_no_lack_of_the_token(on_github: MadeUp) -> None:
    number = on_github.propose().number
    on_github.host.pull_requests[number].locked = True
    with pytest.raises(HostRefusal, match="unlock the conversation") as refused:
        on_github.api().add_comment(number, "A plan")
    assert refused.value.status == 403


def test_githubs_contexts_differ_without_regard_to_case(on_github: MadeUp) -> None:
    api, commit = on_github.api(), on_github.commit()
    api.post(status(commit))
    api.post(replace(status(commit, StatusState.FAILURE), context="Anneal/Blue/Shop"))
    assert not api.shows(status(commit))


def test_github_is_asked_for_no_changed_files(on_github: MadeUp) -> None:
    proposal = on_github.propose()
    on_github.api().merge_base(proposal.base, proposal.head)
    (asked,) = on_github.host.asked("GET", "/compare/")
    assert asked.query == {"per_page": ["1"], "page": ["2"]}


def app_api(host: GitHub, app: GitHubApi, **feedback: Any) -> GitHostApi:
    """Return what the app makes of a repository whose feedback is a GitHub App's."""
    key = SecretRef(file=str(app.key))
    settings = FeedbackSettings(github_app=GitHubAppAuth(APP, INSTALLATION, key, host.url), host="github", **feedback)
    secrets = Secrets(git={key: Secret(app.key.read_text())})
    return git_host_api(Repository(f"{host.origin}/acme/shop.git", feedback=settings), secrets, SharedConnections().pools)


def test_an_app_asks_for_no_more_permissions_than_statuses_need(app: GitHubApi) -> None:
    with GitHub(app=app, installed={"statuses": "write", "metadata": "read"}) as host:
        host.commits = {"a" * 40}
        app_api(host, app).post(status("a" * 40))
        assert app.asked == [{"permissions": {"statuses": "write"}, "repositories": ["shop"]}]


def test_an_app_asks_for_what_pull_requests_need(app: GitHubApi) -> None:
    with GitHub(app=app) as host:
        tried = MadeUp("github", host, (), {Right.WRITER: "write"}, ("", "", ""), lambda *_: True, frozenset())
        proposal = tried.propose()
        api = app_api(host, app, pull_requests=True)
        found = api.pull_request(proposal.number)
        assert api.merge_base(proposal.base, found.head) == proposal.merge_base
        added = api.add_comment(proposal.number, "A plan")
        assert api.edit_comment(proposal.number, added.id, "Another") == replace(added, text="Another")
        assert api.may_write(found.author)
        api.post(status(found.head))
        needed = {"statuses": "write", "pull_requests": "write", "contents": "read", "metadata": "read"}
        assert [each["permissions"] for each in app.asked] == [needed]


def test_an_app_whose_installation_lacks_a_permission_says_which_are_needed(app: GitHubApi) -> None:
    with GitHub(app=app, installed={"statuses": "write", "metadata": "read"}) as host, pytest.raises(AccessDenied) as denied:
        app_api(host, app, pull_requests=True).pull_request(7)
    assert "let the installation have statuses: write and pull_requests: write" in denied.value.problems[0].fix


# --- GitLab


def test_a_note_carries_nothing_out(on_gitlab: MadeUp) -> None:
    host, number = on_gitlab.host, on_gitlab.propose().number
    assert isinstance(host, GitLab)
    api = on_gitlab.api()
    added = api.add_comment(number, "/merge\n/close\n````\n```\n/approve\n````\nA plan\r\n/label ~x")
    api.edit_comment(number, added.id, "/close\nAnother plan")
    assert host.carried_out == []
    assert [each.text for each in host.comments.values()] == ["\u200b/close\nAnother plan"]


def test_a_commit_on_no_branch_of_gitlab_has_its_status(on_gitlab: MadeUp) -> None:
    host, commit = on_gitlab.host, on_gitlab.commit()
    assert isinstance(host, GitLab)
    host.branches[commit] = ""
    api = on_gitlab.api()
    api.post(status(commit))
    assert api.shows(status(commit))
    assert [each.ref for each in host.pipelines] == [commit]


def test_gitlabs_repeated_pending_keeps_the_text_that_it_began_with(on_gitlab: MadeUp) -> None:
    api, commit = on_gitlab.api(), on_gitlab.commit()
    api.post(status(commit, StatusState.PENDING, "being applied"))
    api.post(status(commit, StatusState.PENDING, "waiting"))
    assert api.shows(status(commit, StatusState.PENDING, "being applied"))
    api.post(status(commit, text="done"))
    assert api.shows(status(commit, text="done"))


@pytest.mark.parametrize("name", ["jobs", "updating"])
def test_what_gitlab_refuses_otherwise_is_refused(on_gitlab: MadeUp, name: str) -> None:
    commit = on_gitlab.commit()
    getattr(on_gitlab.host, name).add({"jobs": "anneal/blue/shop", "updating": commit}[name])
    with pytest.raises(HostRefusal) as refused:
        on_gitlab.api().post(status(commit))
    assert refused.value.status == {"jobs": 400, "updating": 409}[name]


def test_a_protected_branch_of_gitlab_names_the_role_that_it_needs(on_gitlab: MadeUp) -> None:
    host, commit = on_gitlab.host, on_gitlab.commit()
    assert isinstance(host, GitLab)
    host.protected.add("main")
    host.roles["anneal"] = 30
    with pytest.raises(AccessDenied, match="for a protected branch one that may push there"):
        on_gitlab.api().post(status(commit))


# --- Bitbucket Cloud


def test_a_head_that_only_the_fork_has_is_asked_for_there(on_bitbucket: MadeUp) -> None:
    host, proposal = on_bitbucket.host, on_bitbucket.propose(Right.READER, fork=True)
    assert isinstance(host, Bitbucket)
    host.commits.remove(proposal.head)
    with pytest.raises(GitUnavailable, match=f"it has no commit {proposal.head[:12]}, which it names as a head"):
        on_bitbucket.api().pull_request(proposal.number)
    host.forks[f"{host.pull_requests[proposal.number].author}/shop"] = {proposal.head}
    assert on_bitbucket.api().pull_request(proposal.number).head == proposal.head


def test_a_head_that_is_gone_is_none_of_a_closed_pull_request(on_bitbucket: MadeUp) -> None:
    proposal = on_bitbucket.propose(Right.READER, fork=True)
    on_bitbucket.close(proposal.number)
    assert on_bitbucket.api().pull_request(proposal.number).head == proposal.head
    on_bitbucket.forget_fork(proposal.number)
    on_bitbucket.host.commits.remove(proposal.head)
    found = on_bitbucket.api().pull_request(proposal.number)
    assert (found.head, found.is_open, found.is_fork) == ("", False, True)


def test_who_may_push_to_bitbucket_goes_by_either_id(on_bitbucket: MadeUp) -> None:
    host = on_bitbucket.host
    host.users |= {"557058:ada": "write", "bob": "read"}
    api = on_bitbucket.api()
    assert [api.may_write(each) for each in ("557058:ada", "{557058:ada}", "bob", "{bob}")] == [True, True, False, False]


def test_a_group_lets_push_to_bitbucket_too(on_bitbucket: MadeUp) -> None:
    host = on_bitbucket.host
    assert isinstance(host, Bitbucket)
    host.users["ada"] = "write"
    host.by_group.add("ada")
    assert on_bitbucket.api().may_write("ada")


def test_an_account_that_cannot_ask_bitbucket_says_so(on_bitbucket: MadeUp) -> None:
    host = on_bitbucket.host
    assert isinstance(host, Bitbucket)
    host.administrators.clear()
    with pytest.raises(AccessDenied, match="be an administrator's of the repository: others can't ask who may push"):
        on_bitbucket.api().may_write("ada")


def test_a_comment_of_another_account_is_not_ours_to_edit(on_bitbucket: MadeUp) -> None:
    number = on_bitbucket.propose().number
    comment = on_bitbucket.say(number, Right.READER, "A question")
    with pytest.raises(AccessDenied):
        on_bitbucket.api().edit_comment(number, comment, "An answer")


def test_a_page_that_bitbucket_would_not_take_is_left_out(on_bitbucket: MadeUp) -> None:
    api, commit = on_bitbucket.api(), on_bitbucket.commit()
    api.post(status(commit, link="http://anneal:8080/ui/targets/shop"))
    assert on_bitbucket.shown(commit, "anneal/blue/shop")[2].endswith(f"/acme/shop/commits/{commit}")


# --- Bitbucket Data Center


def test_an_older_data_center_shows_what_is_superseded_as_failed(on_bitbucketserver: MadeUp) -> None:
    host, commit = on_bitbucketserver.host, on_bitbucketserver.commit()
    assert isinstance(host, BitbucketServer)
    host.version = (7, 21)
    api, superseded = on_bitbucketserver.api(), status(commit, StatusState.SUPERSEDED, "superseded by abc")
    api.post(superseded)
    assert on_bitbucketserver.shown(commit, "anneal/blue/shop")[:2] == ("FAILED", "superseded by abc")
    assert api.shows(superseded)
    assert not api.shows(status(commit, StatusState.SUCCESS, "superseded by abc"))


def test_a_comment_that_was_changed_meanwhile_is_changed_by_its_new_version(on_bitbucketserver: MadeUp) -> None:
    host, number = on_bitbucketserver.host, on_bitbucketserver.propose().number
    api = on_bitbucketserver.api()
    added = api.add_comment(number, "A plan")
    conflict = Answer(
        409, {"errors": [{"context": None, "message": "You are attempting to modify a comment based on out-of-date information."}]}
    )
    fails(host, 1, conflict)
    assert api.edit_comment(number, added.id, "Another plan") == replace(added, text="Another plan")
    fails(host, 2, conflict)
    with pytest.raises(HostRefusal, match="the API answered 409"):
        api.edit_comment(number, added.id, "A third plan")


def test_who_may_push_is_found_among_many_of_like_names(on_bitbucketserver: MadeUp) -> None:
    on_bitbucketserver.host.users |= {f"ada-{number}": "REPO_WRITE" for number in range(250)} | {"ada": "REPO_WRITE", "bo": "REPO_READ"}
    api = on_bitbucketserver.api()
    assert [api.may_write(each) for each in ("ada", "ad", "bo")] == [True, False, False]
    assert len(on_bitbucketserver.host.asked("GET", "/users")) == 3 + 3 + 1


# --- Azure DevOps


def test_azure_devops_server_2020_is_asked_in_its_version(on_azuredevops: MadeUp) -> None:
    host, proposal = on_azuredevops.host, on_azuredevops.propose()
    assert isinstance(host, AzureDevOps)
    host.newest_version = 6.0
    api = on_azuredevops.api()
    api.post(status(proposal.head))
    assert api.shows(status(proposal.head))
    assert api.merge_base(proposal.base, api.pull_request(proposal.number).head) == proposal.merge_base
    assert api.edit_comment(proposal.number, api.add_comment(proposal.number, "A plan").id, "Another") is not None


def test_a_comment_on_azure_waits_for_no_answer(on_azuredevops: MadeUp) -> None:
    host, number = on_azuredevops.host, on_azuredevops.propose().number
    assert isinstance(host, AzureDevOps)
    added = on_azuredevops.api().add_comment(number, "A plan")
    assert host.threads[int(added.id.partition("/")[0])]["status"] == "closed"


def test_azures_page_to_sign_in_is_a_refused_token(on_azuredevops: MadeUp) -> None:
    host, commit = on_azuredevops.host, on_azuredevops.commit()
    assert isinstance(host, AzureDevOps)
    host.signs_in = True
    api = on_azuredevops.api("a-token-that-has-ended")
    for ask in (lambda: api.post(status(commit)), lambda: api.shows(status(commit)), lambda: api.pull_request(7)):
        with pytest.raises(AccessDenied, match="203"):
            ask()


def test_who_may_push_to_azure_is_not_asked(on_azuredevops: MadeUp) -> None:
    assert not on_azuredevops.api().may_write(on_azuredevops.person(Right.OWNER))
    assert on_azuredevops.host.requests == []
