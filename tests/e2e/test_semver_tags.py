"""A range of versions, followed from a push to the cluster: a tag's webhook through the door, real git, real API server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from handler.config.git_settings import Revision, SecretRef, WebhookSecrets
from handler.config.secrets import resolve_all
from handler.config.settings import WebhookSettings
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.web.app import create_app
from tests.e2e.documents import config_map
from tests.e2e.one_target import Shop, told
from tests.fakes.signed_webhooks import github_headers, github_push

SECRET = "secret-of-the-webhook-01"


class Taken:
    """A queue that keeps what it is given."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def put(self, job: Job) -> str:
        self.jobs.append(job)
        return "r1"

    def put_all(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        return tuple(self.put(job) for job in jobs)


def release(shop: Shop, tag: str, *, annotated: bool = False) -> str:
    """Push a commit under a tag and on no branch; return what a webhook would name."""
    shop.declare(config_map(shop.name, "a", {"version": tag}))
    shop.work.git("tag", *(["-a", "-m", "release"] if annotated else []), tag)
    shop.work.git("push", "-q", "origin", tag)
    return shop.work.git("rev-parse", tag)


def delivered(shop: Shop, tag: str, after: str) -> Job | None:
    """Deliver a tag's push to the door; return the job that comes of it."""
    settings = replace(shop.settings, webhooks=WebhookSettings(github=WebhookSecrets((SecretRef(env="HOOK"),))))
    queue = Taken()
    client = create_app(settings, resolve_all(settings, {"HOOK": SECRET}), queue, lambda: True).test_client()
    body = github_push(url=shop.target.repository.url, ref=f"refs/tags/{tag}", after=after)
    answer = client.post("/webhooks/github", data=body, headers=github_headers(body, secret=SECRET))
    assert answer.status_code in (200, 202)
    return queue.jobs[0] if queue.jobs else None


def pushed(shop: Shop, tag: str, *, annotated: bool = False) -> Result:
    job = delivered(shop, tag, release(shop, tag, annotated=annotated))
    assert job is not None
    return shop.handler.run(job)


def version(shop: Shop) -> str:
    return str(shop.kubectl("get", "configmap", "a", "-n", shop.name)["data"]["version"])


def test_the_highest_tag_in_a_range_is_deployed_and_the_next_one_by_its_webhook(shop: Shop) -> None:
    for tag in ("v1.0.0", "v1.1.0", "v2.0.0"):
        release(shop, tag)
    shop.configure(revision=Revision(semver="^1"))
    shop.applied("tick")
    assert version(shop) == "v1.1.0"
    assert shop.state().history[0].subject.startswith("v1.1.0: ")
    result = pushed(shop, "v1.2.0", annotated=True)
    assert result.outcome is Outcome.APPLIED, told(result)
    assert version(shop) == "v1.2.0"
    for tag in ("v1.1.9", "v2.1.0", "v1.3.0-rc.1", "nightly"):
        result = pushed(shop, tag)
        assert (result.outcome, result.message.partition(" ")[0]) == (Outcome.UNCHANGED, "v1.2.0"), told(result)
    assert version(shop) == "v1.2.0"


def test_a_tag_that_is_taken_back_gives_way_to_the_one_before_and_none_at_all_deletes_nothing(shop: Shop) -> None:
    for tag in ("v1.0.0", "v1.1.0"):
        release(shop, tag)
    shop.configure(revision=Revision(semver="1.x"))
    shop.applied("tick")
    shop.work.git("push", "-q", "origin", ":refs/tags/v1.1.0")
    shop.applied("tick")
    assert version(shop) == "v1.0.0"
    shop.work.git("push", "-q", "origin", ":refs/tags/v1.0.0")
    before = shop.versions()
    for trigger in ("push", "tick", "drift"):
        result = shop.run(trigger)
        assert (result.outcome, result.code) == (Outcome.FAILED, "ref-not-found"), told(result)
    assert shop.versions() == before


def test_a_tag_that_the_host_shows_late_is_looked_for_again(shop: Shop) -> None:
    release(shop, "v1.0.0")
    shop.configure(revision=Revision(semver="^1"))
    shop.applied("tick")
    shop.declare(config_map(shop.name, "a", {"version": "v1.1.0"}))
    shop.work.git("tag", "v1.1.0")
    job = delivered(shop, "v1.1.0", shop.work.git("rev-parse", "v1.1.0"))
    assert job is not None
    assert shop.handler.run(job).outcome is Outcome.LAGGING
    shop.work.git("push", "-q", "origin", "v1.1.0")
    assert shop.handler.run(replace(job, looks=1)).outcome is Outcome.APPLIED
    assert version(shop) == "v1.1.0"


def test_the_highest_tag_moved_is_looked_for_again_where_the_host_shows_it_late(shop: Shop) -> None:
    release(shop, "v1.0.0", annotated=True)
    shop.configure(revision=Revision(semver="^1"))
    shop.applied("tick")
    shop.declare(config_map(shop.name, "a", {"version": "v1.0.0, moved"}))
    shop.work.git("tag", "-f", "-a", "-m", "release", "v1.0.0")
    job = delivered(shop, "v1.0.0", shop.work.git("rev-parse", "v1.0.0"))
    assert job is not None
    assert shop.handler.run(job).outcome is Outcome.LAGGING
    shop.work.git("push", "-qf", "origin", "v1.0.0")
    assert shop.handler.run(replace(job, looks=1)).outcome is Outcome.APPLIED
    assert version(shop) == "v1.0.0, moved"


def test_a_target_that_the_configuration_suspends_is_only_planned(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    before = shop.versions()
    shop.push(config_map(shop.name, "a", {"key": "new"}))
    shop.configure(suspend=True)
    for job in (*(shop.job(trigger) for trigger in ("push", "tick", "drift", "oneoff")), shop.job("replay", force=True)):
        result = shop.handler.run(job)
        assert result.outcome is Outcome.SUSPENDED, told(result)
        assert "suspended in the configuration (anneal.yaml)" in result.message
    assert shop.run(dry_run=True).outcome is Outcome.PLANNED
    assert shop.versions() == before
    assert delivered(shop, "x", "a" * 40) is None
    shop.configure(suspend=False)
    shop.applied()
