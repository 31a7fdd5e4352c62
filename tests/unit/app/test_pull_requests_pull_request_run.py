"""One job for a pull request: what is planned, what isn't, what is tried again, and what its host shows then."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.app.pull_requests.pull_request_run import TRIES
from handler.app.pull_requests.target_preview import UNPLANNED
from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import Revision, SecretRef
from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.settings import Settings, Target
from handler.model.commit_status import StatusState
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable, GitUnavailable
from handler.model.event import Job
from handler.model.host_answer import HostBusy, HostRefusal
from handler.model.pull_request import HostComment, PullRequest
from handler.model.result import Outcome, Result
from handler.state.store import StateStore
from tests.fakes.apiserver import ApiServer
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import SHOP, cluster, engine
from tests.fakes.git_host import GitHost
from tests.fakes.pull_request_host import PullRequestHost

FEEDBACK = FeedbackSettings(status=False, pull_requests=True, host="gitea", token=SecretRef(env="PATH"))
REPOSITORY = replace(SHOP, feedback=FEEDBACK)
COMMAND = HostComment("6", "ada", "/anneal plan")


def target(name: str = "shop", **parts: Any) -> Target:
    return Target(name, REPOSITORY, (name,), **({"path": name} | parts))


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
        return (handler or self.handler).run(Job("shop~12", "pull-request", **job), self.stop)

    @property
    def shown(self) -> list[tuple[StatusState, str]]:
        return [(each.state, each.text) for each in self.api.statuses]


@pytest.fixture
def pulls() -> Pulls:
    found = Pulls(cluster(), Settings(targets=(target(),)))
    found.deploy()
    found.proposes({"shop/web.yaml": objects("2")})
    return found


def test_a_pull_request_has_one_comment_and_a_status_of_its_head(pulls: Pulls) -> None:
    result = pulls.run()
    assert (result.outcome, result.message, result.again) == (Outcome.PLANNED, "1 to change", None)
    assert "data.key: 1 → 2" in pulls.api.text
    (status,) = pulls.api.statuses
    expected = (pulls.api.found[12].head, "anneal/default/pull-request/plan", StatusState.SUCCESS, "1 to change")
    assert (status.commit, status.context, status.state, status.text) == expected
    pulls.run()
    assert (len(pulls.api.comments), len(pulls.api.statuses)) == (1, 1)
    assert pulls.api.asked.count("edit_comment") == 0


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"is_open": False}, "it is closed"),
        ({"is_draft": True}, "it is a draft"),
        ({"is_fork": True}, "it comes from a fork, and `forks` is off"),
        ({"base": "release"}, "no target follows release"),
    ],
)
def test_what_isnt_planned_says_nothing_on_the_host(pulls: Pulls, facts: dict[str, Any], said: str) -> None:
    pulls.proposes({"shop/web.yaml": objects("2")}, **facts)
    result = pulls.run()
    assert (result.outcome, result.message, result.again) == (Outcome.PLANNED, said, None)
    assert (pulls.api.comments, pulls.api.statuses) == ({}, [])


def test_a_pull_request_that_is_gone_is_closed(pulls: Pulls) -> None:
    pulls.run()
    del pulls.api.found[12]
    assert pulls.run().message == "it is closed"
    state = pulls.handler.store(pulls.handler.target("shop")).read().state
    assert state is not None
    assert state.pull_requests == ()


def test_a_pull_request_that_is_opened_again_keeps_its_comment(pulls: Pulls) -> None:
    pulls.run()
    opened = pulls.api.found[12]
    pulls.api.found[12] = replace(opened, is_open=False)
    pulls.run()
    pulls.api.found[12] = opened
    pulls.proposes({"shop/web.yaml": objects("3")})
    pulls.run()
    assert len(pulls.api.comments) == 1
    assert "data.key: 1 → 3" in pulls.api.text


# --- asked by a comment
@pytest.mark.parametrize(
    ("comment", "is_planned"),
    [
        (COMMAND, True),
        (replace(COMMAND, text=" /anneal plan\r\n"), True),
        (replace(COMMAND, author="eve"), False),
        (replace(COMMAND, text="/anneal plan please"), False),
        (None, False),
    ],
)
@pytest.mark.parametrize("is_draft", [False, True])
def test_only_the_command_of_an_account_that_may_push_plans_and_plans_a_draft(
    pulls: Pulls, comment: HostComment | None, is_planned: bool, is_draft: bool
) -> None:
    pulls.api.comments = {comment.id: comment} if comment else {}
    pulls.proposes({"shop/web.yaml": objects("2")}, is_draft=is_draft)
    pulls.run(comments=("6",))
    assert bool(pulls.api.statuses) is is_planned


def test_a_strangers_comment_plans_no_draft_whose_commits_have_changed(pulls: Pulls) -> None:
    pulls.api.comments = {"6": replace(COMMAND, author="eve")}
    pulls.proposes({"shop/web.yaml": objects("2")}, is_draft=True)
    assert pulls.run(comments=("6",), changed=True).message == "it is a draft"
    pulls.proposes({"shop/web.yaml": objects("2")})
    pulls.run(comments=("6",), changed=True)
    assert pulls.shown == [(StatusState.SUCCESS, "1 to change")]


def test_comments_of_strangers_displace_none_of_an_account_that_may_push(pulls: Pulls) -> None:
    pulls.api.comments = {"6": COMMAND} | {f"e{number}": HostComment(f"e{number}", "eve", COMMAND.text) for number in range(5)}
    pulls.run(comments=("e0", "6", "e1", "e2"))
    assert pulls.shown == [(StatusState.SUCCESS, "1 to change")]


# --- what can't be done
@pytest.mark.parametrize("error", [GitUnavailable.of("API", "down"), HostBusy.until("API", "429", 600.0)])
def test_a_host_that_doesnt_answer_is_asked_again_later_and_later_but_not_for_ever(pulls: Pulls, error: AnnealError) -> None:
    def down(_asked: str) -> None:
        raise error

    pulls.api.meets = down
    began, result = time.time(), pulls.run()
    assert result.again is not None
    assert (result.outcome, result.again.looks) == (Outcome.FAILED, 1)
    pause = result.again_at - began
    assert pause >= (600.0 if isinstance(error, HostBusy) else 15.0)
    assert pulls.run(looks=TRIES).again is None


def test_a_worker_that_stops_leaves_the_plan_and_asks_for_no_other_try(pulls: Pulls) -> None:
    pulls.stop.set()
    result = pulls.run()
    assert (result.outcome, result.code, result.again) == (Outcome.FAILED, "stopping", None)
    assert (pulls.api.comments, pulls.api.statuses) == ({}, [])


def test_a_host_that_refuses_for_good_isnt_asked_again(pulls: Pulls) -> None:
    def refuse(_asked: str) -> None:
        raise AccessDenied.of("API", "401")

    pulls.api.meets = refuse
    result = pulls.run()
    assert (result.outcome, result.again) == (Outcome.FAILED, None)


def test_git_that_doesnt_answer_shows_on_the_head_and_is_asked_again(pulls: Pulls) -> None:
    pulls.git.down = True
    assert pulls.run().again is not None
    assert pulls.shown == [(StatusState.FAILURE, UNPLANNED)]
    pulls.git.down = False
    pulls.run()
    assert pulls.shown[1:] == [(StatusState.SUCCESS, "1 to change")]


def test_a_mistake_of_ours_shows_on_the_head_too(pulls: Pulls, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("metadata")

    monkeypatch.setattr("handler.app.pull_requests.pull_request_run.preview_target", broken)
    with pytest.raises(KeyError):
        pulls.run()
    assert pulls.shown == [(StatusState.FAILURE, UNPLANNED)]


@pytest.mark.parametrize("what", ["add_comment", "post"])
def test_of_status_and_comment_each_is_posted_where_the_other_is_refused(pulls: Pulls, what: str) -> None:
    def meets(asked: str) -> None:
        if asked == what:
            raise HostRefusal.answered("API", "the API answered 403", 403, "Forbidden")

    pulls.api.meets = meets
    result = pulls.run()
    assert (result.outcome, result.code, result.again) == (Outcome.FAILED, "host-refused", None)
    assert (bool(pulls.api.comments), bool(pulls.api.statuses)) == (what == "post", what == "add_comment")


def test_a_head_that_moves_on_while_it_is_planned_gets_no_comment_of_the_old_one(pulls: Pulls) -> None:
    def meets(asked: str) -> None:
        if asked == "post":
            pulls.proposes({"shop/web.yaml": objects("3")})

    pulls.api.meets = meets
    result = pulls.run()
    assert (result.code, pulls.api.comments) == ("newer-head", {})
    assert result.again is not None
    pulls.api.meets = lambda _: None
    pulls.run()
    assert "data.key: 1 → 3" in pulls.api.text


def test_two_servers_make_one_comment(pulls: Pulls) -> None:
    other = pulls.made()

    def meets(asked: str) -> None:
        if asked == "add_comment":
            pulls.api.meets = lambda _: None
            assert pulls.run(other).again is not None

    pulls.api.meets = meets
    pulls.run()
    pulls.run(other)
    assert len(pulls.api.comments) == 1


# --- several targets
@pytest.mark.parametrize(
    ("error", "is_tried"), [(ClusterUnavailable.of("https://10.0.0.9", "down"), True), (AccessDenied.of("x", "no"), False)]
)
def test_a_target_that_cant_be_planned_now_hides_no_other_and_shows_nothing_of_why(error: AnnealError, is_tried: bool) -> None:
    pulls = Pulls(cluster("shop", "cart"), Settings(targets=(target(), target("cart"))))
    pulls.deploy()
    pulls.proposes({"shop/web.yaml": objects("2"), "cart/web.yaml": objects("3", "cart")})
    known = pulls.handler.brief_store

    def store(target: Target) -> StateStore:
        if target.name == "cart":
            raise error
        return known(target)

    pulls.handler.brief_store = store  # type: ignore[method-assign]  # as a cluster that is silent
    result = pulls.run()
    assert bool(result.again) is is_tried
    assert "data.key: 1 → 2" in pulls.api.text
    assert f"target cart: {UNPLANNED}" in pulls.api.text
    assert "2 targets of 2 read what changes: **1 to change, 1 target can't be planned**." in pulls.api.text
    assert "10.0.0.9" not in pulls.api.text
    assert pulls.shown == [(StatusState.FAILURE, f"cart: target cart: {UNPLANNED}")]
    pulls.handler.brief_store = known  # type: ignore[method-assign]  # it answers again
    pulls.run()
    assert "data.key: 1 → 3" in pulls.api.text
    assert pulls.shown[-1] == (StatusState.SUCCESS, "2 to change")


@pytest.mark.parametrize(("text", "said"), [("{", "1 target can't be planned"), (objects("1") + "# said", "nothing to change")])
def test_what_isnt_planned_is_no_plan_of_nothing(pulls: Pulls, text: str, said: str) -> None:
    pulls.proposes({"shop/web.yaml": text})
    pulls.run()
    assert f"1 target of 1 reads what changes: **{said}**." in pulls.api.text


def test_a_target_that_reads_nothing_of_the_change_is_counted_alone() -> None:
    pulls = Pulls(cluster("shop", "cart"), Settings(targets=(target(), target("cart"))))
    pulls.deploy()
    pulls.proposes({"cart/web.yaml": objects("3", "cart")})
    pulls.run()
    assert "1 target of 2 reads what changes: **1 to change**. 1 target untouched." in pulls.api.text


def test_a_target_whose_branch_reads_otherwise_than_what_is_deployed_is_no_untouched_one(pulls: Pulls) -> None:
    """The branch takes in another directory's file, which what is deployed has never read."""
    more = objects("1").replace("web", "more")
    pulls.git.links = {"shop/more.yaml": "../common/more.yaml"}
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects("1"), "common/more.yaml": more}))
    pulls.proposes({"common/more.yaml": more.replace("1", "2")})
    pulls.run()
    assert "untouched" not in pulls.api.text
    assert "ConfigMap/shop/more" in pulls.api.text


@pytest.mark.parametrize("value", ["2", "{"], ids=["good", "broken"])
def test_a_target_that_isnt_deployed_yet_or_is_broken_is_untouched_by_what_it_doesnt_read(pulls: Pulls, value: str) -> None:
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects(value) if value == "2" else value}))
    pulls.proposes({"README.md": "Hello"})
    pulls.run()
    assert "1 target untouched" in pulls.api.text
    assert pulls.shown == [(StatusState.SUCCESS, "changes nothing")]


@pytest.mark.parametrize("now", [{"revision": Revision(branch="main"), "path": "other"}, {"namespaces": ("shop", "more")}])
def test_a_target_whose_settings_have_changed_since_is_planned_by_git_alone(pulls: Pulls, now: dict[str, Any]) -> None:
    """What lives may be of the settings before: of values that aren't in git, or of another path."""
    files = {f"{now.get('path', 'shop')}/web.yaml": objects("1")}
    pulls.git.push(pulls.git.commit({**pulls.git.commits[pulls.git.head], **files}))
    pulls.settings = Settings(targets=(replace(target(), **now),))
    pulls.handler = pulls.made()
    pulls.proposes({f"{now.get('path', 'shop')}/web.yaml": objects("2")})
    pulls.run()
    assert "the target isn't deployed with its settings yet" in pulls.api.text
    assert "data.key: 1 → 2" in pulls.api.text


def test_what_lived_of_values_that_arent_in_git_stays_unseen_when_they_are_configured_no_longer(pulls: Pulls) -> None:
    canary = "canary7f3a9ce1d255b0"
    substituted = PostBuild(substitute_from=(SubstituteFrom("ConfigMap", "values"),))
    pulls.settings = Settings(targets=(target(post_build=substituted),))
    pulls.handler = pulls.made()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values", "namespace": "shop"}, "data": {"KEY": canary}}
    pulls.server.answer(Asked("POST", "/api/v1/namespaces/shop/configmaps", {}, body, "", ""))
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects("${KEY:-1}")}))
    pulls.deploy()
    pulls.settings = Settings(targets=(target(),))
    pulls.handler = pulls.made()
    pulls.proposes({"shop/web.yaml": objects("2")})
    pulls.run()
    assert canary not in pulls.api.text
    assert "data.key" in pulls.api.text
