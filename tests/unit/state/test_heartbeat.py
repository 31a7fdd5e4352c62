"""The heartbeat: which servers run, their targets, when each looked; when health was watched, and when recorded health is unknown."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import AccessDenied, Moved
from handler.state.heartbeat import EVERY, HOLDS, Beat, Heartbeat, Pulse, Server, Signs, heartbeat_name, known
from handler.state.lease_record import micro_time
from handler.state.record import TargetHealth
from handler.state.record_format import stamp
from tests.fakes.objects import Body, FakeObjects

NOW = 1_900_000_000.0
DAY = 86_400.0


class Cluster:
    """A cluster whose clock the test moves, and the Lease on it."""

    def __init__(self) -> None:
        self.now = NOW
        self.objects = FakeObjects(clock=lambda: self.now)
        self.lease = Heartbeat(self.objects, "anneal-system", "default")

    def body(self) -> Body:
        found = self.objects.get("Lease", "anneal-system", heartbeat_name("default"))
        assert found
        return found

    def write(self, annotations: dict[str, Any]) -> None:
        body = self.body()
        self.objects.replace({**body, "metadata": {**body["metadata"], "annotations": annotations}})


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def signs(server: str = "one", *targets: str, ago: float = 0.0, watched: tuple[float, float] | None = None) -> Signs:
    return Signs(server, "1.2.3", dict.fromkeys(targets, ago), watched)


def test_a_reader_without_the_right_to_it_knows_of_no_watch_and_says_that_it_knows_nothing() -> None:
    class Denying:
        def get(self, *_: str) -> Any:
            raise AccessDenied.of("get Lease", "is forbidden")

    objects: Any = Denying()
    assert Heartbeat(objects, "anneal-system", "default").read() == Pulse(readable=False)


def test_without_a_heartbeat_no_server_was_ever_seen(cluster: Cluster) -> None:
    found = cluster.lease.read()
    assert (found.readable, found.last, found.server("shop"), found.looked("shop"), found.watched) == (True, None, None, 0.0, None)


def test_a_heartbeat_says_the_server_its_targets_and_when_it_looked(cluster: Cluster) -> None:
    cluster.lease.renew(Signs("one", "1.2.3", {"shop": 40.0, "bank": math.inf}))
    cluster.now += EVERY
    found = cluster.lease.read()
    assert found.server("shop") == found.server("bank") == found.last == Server("one", "1.2.3", NOW)
    assert (found.looked("shop"), found.looked("bank")) == (NOW - 40, 0.0)
    assert found.server("other") is None
    body = cluster.body()
    assert body["metadata"]["name"] == "anneal-heartbeat.default"
    assert body["spec"] == {"holderIdentity": "one", "leaseDurationSeconds": int(HOLDS), "renewTime": micro_time(NOW)}


def test_a_server_that_renews_no_more_doesnt_run_and_is_remembered_as_the_last(cluster: Cluster) -> None:
    cluster.lease.renew(signs("one", "shop"))
    cluster.now += HOLDS
    assert cluster.lease.read().server("shop")
    cluster.now += 1
    found = cluster.lease.read()
    assert found.server("shop") is None
    assert (found.last, found.looked("shop")) == (Server("one", "1.2.3", NOW), NOW)


def test_each_server_keeps_what_the_others_say_and_the_older_look_is_no_news(cluster: Cluster) -> None:
    cluster.lease.renew(signs("one", "shop", ago=10.0))
    cluster.lease.renew(signs("two", "bank"))
    cluster.now += 60
    cluster.lease.renew(Signs("three", "1.2.4", {"shop": math.inf}))
    found = cluster.lease.read()
    assert {name: found.server(name).name for name in ("shop", "bank")} == {"shop": "three", "bank": "two"}  # type: ignore[union-attr]  # both run
    assert found.looked("shop") == NOW - 10, "looked at by the server before"


def test_targets_that_a_server_has_given_up_have_no_server(cluster: Cluster) -> None:
    cluster.lease.renew(signs("one", "shop", "bank"))
    cluster.lease.renew(signs("one", "shop"))
    assert cluster.lease.read().server("bank") is None


def test_servers_that_are_long_gone_are_forgotten_and_so_are_all_but_the_newest(cluster: Cluster) -> None:
    cluster.lease.renew(signs("old", "gone"))
    cluster.now += DAY + 1
    for number in range(40):
        cluster.now += 1
        cluster.lease.renew(signs(f"crashed-{number}", "shop"))
    found = cluster.lease.read()
    assert len(found.servers) == 32
    assert "old" not in found.servers
    assert set(found.targets) == {"shop"}
    assert found.last == found.server("shop") == Server("crashed-39", "1.2.3", cluster.now)


def test_a_server_that_doesnt_watch_vouches_for_no_health_and_keeps_what_another_says(cluster: Cluster) -> None:
    cluster.lease.renew(signs("blind", "shop"))
    assert cluster.lease.read().watched is None
    cluster.lease.renew(signs("one", "shop", watched=(5.0, 180.0)))
    cluster.lease.renew(signs("blind", "shop"))
    assert cluster.lease.read().watched == Beat(NOW - 5, 180.0)
    cluster.lease.renew(signs("late", "shop", watched=(50.0, 9.0)))
    assert cluster.lease.read().watched == Beat(NOW - 5, 180.0), "watched later by another"


def test_a_thousand_targets_are_few_bytes_and_read_as_they_are(cluster: Cluster) -> None:
    names = [f"team-{number % 7}-service-{number}" for number in range(1000)]
    cluster.lease.renew(signs("anneal-5c9f8d7b6-abcde_12", *names))
    assert len(cluster.body()["metadata"]["annotations"]["anneal.dev/targets"]) < 12_000
    found = cluster.lease.read()
    assert set(found.targets) == set(names)
    assert found.looked(names[-1]) == NOW


def test_a_quicker_servers_heartbeat_is_not_undone(cluster: Cluster) -> None:
    cluster.lease.renew(signs("one", "shop"))
    others = iter(["two", "three"])

    def between(verb: str, _body: Body) -> None:
        if verb == "replace" and (name := next(others, "")):
            cluster.objects.before = None
            cluster.lease.renew(signs(name, name))
            cluster.objects.before = between

    cluster.objects.before = between
    cluster.lease.renew(signs("one", "shop"))
    assert set(cluster.lease.read().servers) == {"one", "two", "three"}


def test_a_heartbeat_gives_up_after_five_conflicts(cluster: Cluster) -> None:
    def moved(verb: str, _body: Body) -> None:
        if verb == "create":
            raise Moved.of("Lease", "exists already")

    cluster.objects.before = moved
    with pytest.raises(Moved):
        cluster.lease.renew(signs("one", "shop"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"one": 7}', '{"one": [1]}', '{"one": ["a", Infinity]}', "H4sIAAAA", '"x"', '{"one": {"version": 1}}']
)
def test_a_heartbeat_that_cant_be_read_says_nothing_and_the_next_renewal_replaces_it(cluster: Cluster, text: str) -> None:
    cluster.lease.renew(signs("one", "shop", watched=(0.0, 180.0)))
    cluster.write({"anneal.dev/servers": text, "anneal.dev/targets": text, "anneal.dev/health": text})
    found = cluster.lease.read()
    assert (found.watched, found.last, found.server("shop")) == (None, None, None)
    cluster.lease.renew(signs("one", "shop"))
    assert cluster.lease.read().server("shop")


def test_a_server_that_says_that_it_ends_doesnt_run_from_then_on(cluster: Cluster) -> None:
    cluster.lease.renew(signs("one", "shop"))
    cluster.lease.renew(replace(signs("one", "shop"), ended=True))
    found = cluster.lease.read()
    assert found.server("shop") is None
    assert (found.last, found.looked("shop")) == (Server("one", "1.2.3", NOW, ended=True), NOW)
    cluster.lease.renew(signs("one", "shop"))
    assert cluster.lease.read().server("shop") == Server("one", "1.2.3", NOW), "started anew, by the same name"


def test_targets_of_a_server_that_ends_are_anothers_until_that_says_otherwise(cluster: Cluster) -> None:
    cluster.lease.renew(signs("two", "shop"))
    cluster.lease.renew(signs("gone", "shop"))
    cluster.lease.renew(replace(signs("gone", "shop"), ended=True))
    cluster.lease.renew(signs("one", "shop", "bank"))
    cluster.lease.renew(replace(signs("one", "shop", "bank"), ended=True))
    found = cluster.lease.read()
    assert {name: found.server(name) for name in ("shop", "bank")} == dict.fromkeys(("shop", "bank"), Server("two", "1.2.3", NOW))
    cluster.lease.renew(signs("two", "shop"))
    assert cluster.lease.read().server("bank") is None


def test_a_watch_is_of_the_targets_of_a_server_that_lived_then(cluster: Cluster) -> None:
    cluster.lease.renew(signs("one", "shop", "bank", watched=(5.0, 180.0)))
    assert cluster.lease.read().watch("shop") == Beat(cluster.now - 5, 180.0)
    cluster.now += 1000  # it is gone
    assert cluster.lease.read().watch("shop") == Beat(cluster.now - 1005, 180.0), "which holds no longer"
    cluster.lease.renew(signs("two", "bank", watched=(0.0, 180.0)))
    found = cluster.lease.read()
    assert (found.watch("bank"), found.watch("shop"), found.watch("none")) == (Beat(cluster.now, 180.0), None, None)


@pytest.mark.parametrize(
    ("beat", "ago", "state"),
    [
        (Beat(NOW - 10, 180.0), 86400.0, "degraded"),  # watched
        (Beat(NOW - 181, 180.0), 300.0, "unknown"),  # not any more
        (Beat(NOW - 181, 180.0), 182.0, "unknown"),
        (Beat(NOW - 86400, 180.0), 3600.0, "degraded"),  # functions took over: their drift runs judge
        (Beat(NOW - 86400, 180.0), 5401.0, "unknown"),
        (None, 5400.0, "degraded"),
        (None, 5401.0, "unknown"),
    ],
)
def test_health_that_wasnt_judged_for_three_drift_intervals_is_unknown(beat: Beat | None, ago: float, state: str) -> None:
    recorded = TargetHealth("degraded", stamp(NOW - ago), stamp(NOW - ago), ("Deployment/shop/api: failed",))
    found = known(recorded, beat, NOW, 1800.0)
    assert found.state == state
    if state == "unknown":
        last = max(NOW - ago, beat.renewed if beat else 0.0)
        assert found.worst == (f"was degraded when it was judged last, {stamp(last)}", *recorded.worst)
        assert found.since == stamp(last)


def test_health_that_was_never_judged_is_unknown() -> None:
    assert known(TargetHealth(), Beat(NOW, 180.0), NOW, 1800.0).state == "unknown"


def test_a_watch_goes_on_without_a_gap_until_there_is_one_also_from_server_to_server(cluster: Cluster) -> None:
    for later, server, ago, since in (
        (0, "one", 10.0, -10.0),
        (100, "one", 0.0, -10.0),
        (180, "two", 0.0, -10.0),
        (181, "two", 0.0, 461.0),
    ):
        cluster.now += later
        cluster.lease.renew(signs(server, watched=(ago, 180.0)))
        found = cluster.lease.read().watched
        assert found
        assert found.since - NOW == since, "the other one goes on with it; after 181 seconds none has watched for a while"


@pytest.mark.parametrize(
    ("since", "ago", "known_since"),
    [
        (NOW - 9000, 9000.0, 9000.0),  # watched all the time
        (NOW - 8820, 9000.0, 9000.0),  # no longer than a watch may take
        (NOW - 8819, 9000.0, 8819.0),
        (NOW - 3600, 9000.0, 3600.0),  # the watch was away, for less than three drift intervals
        (NOW - 100, 50.0, 50.0),  # it is so since later
        (0.0, 9000.0, 9000.0),  # a heartbeat of an older version doesn't say
    ],
)
def test_health_that_is_watched_again_after_a_gap_is_known_since_then(since: float, ago: float, known_since: float) -> None:
    recorded = TargetHealth("healthy", stamp(NOW - ago), stamp(NOW - ago))
    found = known(recorded, Beat(NOW - 10, 180.0, since), NOW, 1800.0)
    assert (found.state, found.since) == ("healthy", stamp(NOW - known_since))


@pytest.mark.parametrize("later", ["9999-12-31T23:59:59.999999Z", "2999-12-31T23:59:59Z", micro_time(NOW + 2 * EVERY)])
def test_what_is_said_to_be_later_than_now_is_not_believed_and_hinders_no_renewal(cluster: Cluster, later: str) -> None:
    cluster.lease.renew(signs("one", "shop", watched=(0.0, 60.0)))
    servers = f'{{"two": {{"version": "1", "renewed": "{later}"}}}}'
    cluster.write(
        {
            "anneal.dev/health": f"{later} 60",
            "anneal.dev/health-since": later,
            "anneal.dev/servers": servers,
            "anneal.dev/targets": f'{{"shop": ["two", {10**30}], "web": ["two", -{10**30}]}}',
        }
    )
    found = cluster.lease.read()
    assert (found.watched, found.servers, found.targets) == (None, {}, {})
    cluster.lease.renew(signs("one", "shop", watched=(0.0, 60.0)))
    found = cluster.lease.read()
    assert (found.watched, list(found.servers), found.looked("shop")) == (Beat(NOW, 60.0), ["one"], NOW)
