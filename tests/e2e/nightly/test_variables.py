"""Variables that live in the cluster show nowhere, however short they are."""

from __future__ import annotations

import io
import json
import re

from handler.model.plan import Change
from handler.model.result import Outcome, Result
from handler.model.to_json import plain
from tests.e2e.conftest import Open
from tests.e2e.documents import Document
from tests.e2e.one_target import Shop, told
from tests.e2e.planted_secrets import CANARY, OTHER, assert_plans_silent, assert_silent, run, surfaces
from tests.e2e.rendered_trees import push_files, text_of
from tests.e2e.test_variables import MAP, SETTINGS, settle, shop  # noqa: F401 - fixtures, too


def fields(result: Result, kind: str) -> list[tuple[str, str, str]]:
    [change] = [each for each in changes(result) if each.identity.kind == kind]
    return [(field.path, field.live, field.declared) for field in change.fields]


def changes(result: Result) -> list[Change]:
    assert result.plan, told(result)
    return [each for stage in result.plan.stages for each in stage]


def test_no_secret_shows_anywhere_however_short_it_is(shop: Shop, logged: io.StringIO) -> None:
    results = [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    assert results[1].outcome is Outcome.APPLIED, told(results[1])
    settle(shop, password=OTHER, count="5")
    results += [run(shop, shop.job("oneoff", dry_run=True))]
    assert fields(results[-1], "Deployment") == [("spec.replicas", "***", "***")]
    assert fields(results[-1], "ConfigMap") == [("data.url", "***", "***")]
    settle(shop, password=OTHER, count="many")
    results += [run(shop, shop.job("drift"))]
    assert results[-1].outcome is Outcome.FAILED, told(results[-1])
    assert "many" not in told(results[-1])
    settle(shop, password=OTHER, count="-17")
    results += [run(shop, shop.job("drift"))]
    assert results[-1].outcome is Outcome.FAILED, told(results[-1])
    assert "17" not in str(results[-1].problems).replace(shop.name, ""), told(results[-1])  # a random name may hold it
    assert_silent(shop, logged, *results, planted=(CANARY, OTHER))
    assert_plans_silent([each for each in results if each.plan])
    assert "many" not in json.dumps(plain(shop.state().history))


RIGHT, WRONG = "canary7f3a9c", "canary0b1d2e"
_VARIES = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?|\bapplyset-[\w-]+-v1\b|\b[0-9a-f]{12,64}\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b"
    r"|,?\s*\"(seconds|duration)\":\s*[\d.]+|just now|\d+ m?s( ago)?|\d+(\.\d+)?"
)
"""What no two shops have alike."""


def nightly(*env: Document) -> Document:
    """A CronJob that keeps as many Jobs as the Secret says. It is healthy at once: no controller has to do anything."""
    containers = [{"name": "main", "image": "shop:1", "env": [*env]}]
    job = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}}
    spec = {"schedule": "0 0 29 2 *", "successfulJobsHistoryLimit": "${count}", "jobTemplate": job}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "web"}, "spec": spec}


def guessing(guess: str) -> list[dict[str, str]]:
    """Return what an author pushes, one after the other, who guesses what the Secret holds."""
    used, web = MAP, text_of(nightly())
    written = json.dumps({f"k{cut}": guess[:cut] for cut in (6, 8, len(guess))})
    literal = used.replace("${password}", guess)
    named = nightly({"name": "DB_PASSWORD", "value": "${password}"})
    beside = text_of(named)
    return [
        {"deploy/map.yaml": used, "deploy/web.yaml": web},
        {
            "deploy/map.yaml": f"{used}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: guess}}\ndata: {written}\n",
            "deploy/web.yaml": web,
        },
        {"deploy/map.yaml": literal, "deploy/web.yaml": web},
        {"deploy/map.yaml": used, "deploy/web.yaml": text_of(named | {"spec": named["spec"] | {f"{guess}x": 1}})},
        {"deploy/map.yaml": used.replace("name: out", f"name: out, labels: {{a: {guess}!}}"), "deploy/web.yaml": beside},
    ]


def test_the_same_is_shown_of_a_guess_whatever_the_secret_holds(open_shop: Open, logged: io.StringIO) -> None:
    def shown(password: str) -> tuple[dict[str, str], list[Outcome]]:
        shop = open_shop()
        shop.create_namespace()
        shop.configure(namespace=shop.name, namespaces=(shop.name,), post_build=SETTINGS)
        settle(shop, password=password)
        results, since = list[Result](), len(logged.getvalue())
        for files in guessing(RIGHT):
            push_files(shop, files)
            results += [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
        found = surfaces(shop, logged, *results) | {"log": logged.getvalue()[since:]}
        del found["results"], found["metrics"]  # Python's own words, and times
        found["plans"] = json.dumps([plain(result.plan) for result in results])
        return {where: _VARIES.sub("", text.replace(shop.name, "SHOP")) for where, text in found.items()}, [
            each.outcome for each in results
        ]

    (right, outcomes), (wrong, _) = shown(RIGHT), shown(WRONG)
    assert outcomes[1::2] == [Outcome.APPLIED, Outcome.APPLIED, Outcome.APPLIED, Outcome.FAILED, Outcome.FAILED]
    for where, text in right.items():
        assert text == wrong[where], where
