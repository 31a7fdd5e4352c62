"""From a push or a replay over HTTP to what `/api` shows of it, on a real cluster and git host, also when the worker is killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

from jsonschema import Draft202012Validator

from handler.model.names import state_name
from tests.e2e.documents import config_map
from tests.e2e.killed_runs import outlive
from tests.e2e.one_target import STATES, Shop
from tests.e2e.serve_process import TOKEN, Serving
from tests.e2e.status_api import READ, bearer, metrics, pushed
from tests.in_process import ran
from tests.patience import until

LATE = "cluster: hasn't answered within"


def read(server: Serving, path: str, token: str = READ) -> Any:
    """Read, again where a busy machine's cluster was too slow to be shown as it is now."""
    answers = []

    def fresh() -> bool:
        status, answer = server.send("GET", path, headers=bearer(token))
        assert status == 200, answer
        answers.append(answer)
        return LATE not in json.dumps(answer)

    until(fresh, server.log.read_text)
    return answers[-1]


def replay(server: Serving, target: str, **asked: Any) -> str:
    status, answer = server.send("POST", f"/replay/{target}", json.dumps(asked).encode(), bearer(TOKEN))
    assert status == 202, answer
    return str(answer["run"])


def ended(server: Serving, run: str) -> dict[str, Any]:
    """Follow a run to its end."""
    found: dict[str, Any] = {}

    def reached() -> bool:
        status, answer = server.send("GET", f"/api/runs/{run}", headers=bearer(TOKEN))
        assert status in (200, 503), answer  # 503: there is no worker now; never unknown
        found.clear()
        found.update(answer)
        return status == 200 and answer["status"] == "ended"

    until(reached, lambda: f"{found}\n{server.log.read_text()[-3000:]}")
    return found


def test_a_push_and_a_replay_are_followed_to_the_record_that_they_leave(serving: Serving, shop: Shop) -> None:
    first = shop.push(config_map(shop.name, "a"))
    serving.start().ready()
    until(lambda: read(serving, f"/api/targets/{shop.name}")["recorded"], serving.log.read_text)
    second = shop.push(config_map(shop.name, "a", {"key": "2"}))
    run = pushed(serving, shop, second)
    told = ended(serving, run)
    assert (told["outcome"], told["commit"], told["counts"]) == ("applied", second, {"configured": 1}), told

    shown = read(serving, f"/api/targets/{shop.name}")["state"]
    assert (shown["commit"], shown["status"]["phase"], shown["history"][0]["id"]) == (second, "applied", run)
    assert shown["deliveries"][0]["hint"] == second
    delivered = read(serving, f"/api/deliveries?target={shop.name}")
    assert delivered["recorded"][0]["hint"] == delivered["process"][0]["targets"][0]["commit"] == second
    assert delivered["process"][0]["targets"][0]["run"] == run
    (row,) = read(serving, "/api/targets")["targets"]
    assert (row["target"], row["commit"], row["trouble"]) == (shop.name, second, None)

    back = ended(serving, replay(serving, shop.name, commit=first))
    assert (back["outcome"], back["actor"], back["trigger"]) == ("applied", "ops", "replay")
    shown = read(serving, f"/api/targets/{shop.name}")["state"]
    assert (shown["commit"], shown["pin"]["by"], shown["history"][0]["actor"]) == (first, "ops", "ops")
    wrong = ended(serving, replay(serving, shop.name, approve="h-none"))
    assert (wrong["outcome"], wrong["code"]) == ("refused", "request-refused")

    command = ["replay", shop.name, "--unpin", "--json", "--server", f"http://127.0.0.1:{serving.port}"]
    done = ran(command, {**os.environ, "ANNEAL_TOKEN": TOKEN})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["commit"] == second
    assert read(serving, f"/api/targets/{shop.name}")["state"]["pin"] is None

    document = read(serving, "/api/openapi.json")
    schemas = {"components": document["components"]}
    for path, schema in (("/api/targets", "Targets"), (f"/api/targets/{shop.name}", "Target"), ("/api/deliveries", "Deliveries")):
        for token in (READ, TOKEN):
            Draft202012Validator({"$ref": f"#/components/schemas/{schema}", **schemas}).validate(read(serving, path, token))
    for found in (told, back, wrong):
        Draft202012Validator({"$ref": "#/components/schemas/Run", **schemas}).validate(found)


def test_a_lost_record_is_found_and_the_run_after_it_prunes_by_itself(serving: Serving, shop: Shop) -> None:
    """The first run prunes nothing and says so; the next one comes soon, without a push or a person."""
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "gone"))
    serving.start().ready()
    until(lambda: read(serving, f"/api/targets/{shop.name}")["recorded"], serving.log.read_text)
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    shop.kubectl.run("delete", "configmap", state_name(shop.name), "-n", STATES)
    run = replay(serving, shop.name)
    told = ended(serving, run)
    assert (told["run"], told["outcome"], told["counts"]) == (run, "applied", {"created": 1, "unchanged": 1, "skipped": 1}), told
    assert told["changed"] == [f"ConfigMap/{shop.name}/b create"]
    until(lambda: serving.runs(run=run), serving.log.read_text)  # the answer comes first, then the line
    (line,) = serving.runs(run=run)
    assert (line["outcome"], line["counts"]) == ("applied", told["counts"])
    assert line["note"].startswith("1 object written; 1 object that git doesn't declare is kept, for the state was missing")
    until(lambda: sorted(shop.labelled()) == [f"ConfigMap/{shop.name}/a", f"ConfigMap/{shop.name}/b"], serving.log.read_text)
    until(lambda: len(read(serving, f"/api/targets/{shop.name}")["state"]["history"]) == 2, serving.log.read_text)
    newest, oldest = read(serving, f"/api/targets/{shop.name}")["state"]["history"]
    assert (oldest["id"], oldest["counts"]) == (run, told["counts"])
    assert (newest["trigger"], newest["counts"]) == ("tick", {"unchanged": 2, "pruned": 1})
    until(lambda: changed(serving, shop) == {"created": "3.0", "pruned": "1.0"}, lambda: metrics(serving))  # two by the first run


def changed(server: Serving, shop: Shop) -> dict[str, str]:
    """Return what the metrics say of objects that runs have changed, by action."""
    rows = [row for row in metrics(server).splitlines() if row.startswith("anneal_changes_total") and shop.name in row]
    return {row.partition('action="')[2].partition('"')[0]: row.rpartition(" ")[2] for row in rows}


def test_what_is_not_configured_any_more_is_listed_for_tokens_that_may_see_it(
    serving: Serving, shop: Shop, open_shop: Callable[..., Shop]
) -> None:
    gone = open_shop()
    gone.create_namespace()
    gone.push(config_map(gone.name, "a"))
    gone.applied()
    shop.push(config_map(shop.name, "a"))
    serving.start().ready()
    retired = {row["target"]: row for row in read(serving, "/api/targets", TOKEN)["retired"]}
    assert (retired[gone.name]["commit"], retired[gone.name]["namespace"]) == (gone.head, STATES)
    assert retired[gone.name]["stranger"], "the installation has no name of its own"
    assert retired[gone.name]["next"] == f"anneal retire {gone.name} --prune --dry-run"
    assert shop.name not in retired
    assert read(serving, "/api/targets")["retired"] == []


def test_a_replay_taken_by_a_killed_worker_is_run_by_the_next(serving: Serving, shop: Shop) -> None:
    """First one that never read it, then workers killed at whatever they do; each request ends, and is recorded once at most."""
    first = shop.push(config_map(shop.name, "a"))
    serving.start().ready()
    until(lambda: read(serving, f"/api/targets/{shop.name}")["recorded"], serving.log.read_text)
    second = shop.push(config_map(shop.name, "a", {"key": "2"}))
    ended(serving, pushed(serving, shop, second))
    worker = serving.pid("worker")
    os.kill(worker, signal.SIGSTOP)
    asked = [replay(serving, shop.name, commit=first)]
    os.kill(worker, signal.SIGKILL)
    outlive(shop)
    assert ended(serving, asked[0])["outcome"] == "applied"
    for commit in (second, first, second, first):
        asked.append(replay(serving, shop.name, commit=commit))
        serving.kill("worker")
        outlive(shop)
        until(lambda: "anneal_outbox_kept 0.0" in metrics(serving), serving.log.read_text)
        assert shop.state().commit == commit, serving.log.read_text()
    recorded = [run.id for run in shop.state().history]
    assert [recorded.count(run) for run in asked] == [1] * len(asked)
