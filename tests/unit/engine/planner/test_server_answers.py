"""Objects that name what a run creates before them, on an API server in memory that looks for it as the real one does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from handler.engine.apply import apply
from handler.model.event import Job
from handler.model.result import Outcome, Result
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import cluster, engine
from tests.fakes.git_host import GitHost

WAVE = "argocd.argoproj.io/sync-wave"
SECRET = "/api/v1/namespaces/shop/secrets/db"


@dataclass
class Looking:
    """A cluster on which a webhook refuses ConfigMaps that name a Secret which isn't there. `late`: how often it hears of one too late."""

    server: ApiServer = field(default_factory=cluster)
    host: GitHost = field(default_factory=GitHost)
    late: int = 0

    def way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        asked = call.asked
        named = (asked.body or {}).get("data", {}).get("secret") if asked.method == "PATCH" and "/configmaps/" in asked.path else ""
        if named and asked.path.rpartition("/")[2] in ("reader", "other"):
            status, _ = self.server.answer(Asked("GET", SECRET.replace("db", named), {}, None, "", ""))
            there = status == 200 and self.late <= 0
            self.late -= status == 200
            if not there:
                said = f'admission webhook "v.example.com" denied the request: secrets "{named}" not found'
                return 403, {"kind": "Status", "message": said, "reason": "Forbidden"}, {}
        return do()

    def run(self, *documents: dict[str, Any], **about: Any) -> Result:
        sha = self.host.commit({f"shop/{number}.yaml": json.dumps(each) for number, each in enumerate(documents)})
        self.host.push(sha)
        return engine(self.server, self.host, way=self.way).run(Job("shop", "push", **about))

    def live(self, path: str) -> dict[str, Any] | None:
        status, body = self.server.answer(Asked("GET", f"/api/v1/namespaces/shop/{path}", {}, None, "", ""))
        return body if status == 200 else None


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> Looking:
    monkeypatch.setattr(apply, "_CRD_LAG", (0.0,))
    return Looking()


def document(kind: str, name: str, wave: int = 0, **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "shop", "annotations": {WAVE: str(wave)}}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "data": data}


def test_a_missing_reference_that_this_run_creates_before_is_no_refusal(looking: Looking) -> None:
    looking.late = 3
    result = looking.run(document("Secret", "db"), document("ConfigMap", "reader", 1, secret="db"))
    assert result.outcome is Outcome.APPLIED, result.message
    assert result.plan
    assert "ConfigMap/shop/reader: checked by the server once Secret/shop/db exists" in result.plan.notes
    assert looking.live("configmaps/reader")


@pytest.mark.parametrize(
    ("wave", "names", "way_out"),
    [(0, "db", "let it come first: write under ConfigMap/shop/reader's metadata"), (1, "typo", "declare it in the same path")],
)
def test_a_missing_reference_that_comes_later_is_refused_in_the_plan(looking: Looking, wave: int, names: str, way_out: str) -> None:
    result = looking.run(document("Secret", "db"), document("ConfigMap", "reader", wave, secret=names), document("ConfigMap", "a"))
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused")
    assert way_out in result.message
    assert [looking.live(path) for path in ("secrets/db", "configmaps/a")] == [None, None]


def test_a_live_object_that_comes_to_name_it_is_judged_in_its_stage(looking: Looking) -> None:
    assert looking.run(document("ConfigMap", "reader", 1, key="1")).outcome is Outcome.APPLIED
    looking.late = 2
    result = looking.run(document("Secret", "db"), document("ConfigMap", "reader", 1, secret="db"))
    assert result.outcome is Outcome.APPLIED, result.message
    assert result.plan
    (change,) = (change for change in result.plan.writes if change.identity.name == "reader")
    assert {item.path for item in change.fields} == {"data.key", "data.secret"}
    live = looking.live("configmaps/reader")
    assert live
    assert live["data"] == {"secret": "db"}
    lost = looking.run(document("Secret", "db"), document("ConfigMap", "reader", 1, secret="typo"))
    assert (lost.outcome, lost.code) == (Outcome.FAILED, "plan-refused")


def test_a_late_refusal_by_the_server_in_its_stage_ends_the_run(looking: Looking) -> None:
    """A Secret that another process deletes as soon as it is there is missing for good."""
    looking.late = 1
    first, answer = looking.way, []

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        reply = first(call, do)
        if call.writes and call.asked.path == SECRET:
            answer.append(reply)
        if len(answer) and call.asked.path.endswith("/configmaps/reader") and reply[0] == 403:
            said = "admission webhook denied the request: no"
            return 403, {"kind": "Status", "message": said, "reason": "Forbidden"}, {}
        return reply

    looking.way = way  # type: ignore[method-assign]  # on its way, too
    result = looking.run(document("Secret", "db"), document("ConfigMap", "reader", 1, secret="db"))
    assert result.outcome is Outcome.FAILED
    assert looking.live("secrets/db")
    assert not looking.live("configmaps/reader")
