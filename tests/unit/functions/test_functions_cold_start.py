"""What a function's process loads, and when: importing the entry points costs next to nothing, and each has its own parts alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.aws_events import function_url
from tests.fakes.page_visits import PAGE_SECRETS
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
from tests.unit.functions.conftest import CONFIG, QUEUE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = {"kubernetes", "dulwich", "handler.render", "handler.source", "handler.cluster"}
AMAZON = {"boto3", "botocore"}
NEVER = {"cel_expr_python", "paramiko", "prometheus_client", "gunicorn", "jwt", "cryptography", "rich"}
WEB = {"flask", "werkzeug", "apig_wsgi"}
HEAVY = CLUSTER | AMAZON | NEVER | WEB | {"yaml"}
PUSH = github_push()
DELIVERY = function_url("POST", "/webhooks/github", github_headers(PUSH, "another-secret-0123456"), PUSH)
SIGN_IN = function_url("GET", "/ui/login", {})
HEALTH = function_url("GET", "/healthz", {})
MADE = "handler.functions.OURS.made[{!r}].get()"


def loaded(code: str, tmp_path: Path) -> set[str]:
    """Return what of all that is heavy a fresh process has loaded after this."""
    place = tmp_path / "anneal.yaml"
    place.write_text(json.dumps(CONFIG))
    names = {"GITHUB": SECRETS["GITHUB"], "ALL": SECRETS["ALL"], "GIT": "a-token", "AWS_EC2_METADATA_DISABLED": "true"} | PAGE_SECRETS
    environ = {"ANNEAL_CONFIG": str(place), "ANNEAL_QUEUE_URL": QUEUE, "KUBECONFIG": "/nonexistent", **names}
    shown = f"import json, sys, handler.functions\n{code}\nprint(json.dumps([name for name in {sorted(HEAVY)!r} if name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", shown], check=True, capture_output=True, text=True, cwd=ROOT, env=environ)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_entry_points_loads_nothing_heavy(tmp_path: Path) -> None:
    assert loaded("", tmp_path) == set()


@pytest.mark.parametrize(
    ("code", "own"),
    [
        (f"print(handler.functions.webhook({HEALTH!r}, None))", WEB | {"yaml"}),
        (f"print(handler.functions.webhook({DELIVERY!r}, None))", WEB | {"yaml"}),
        (f"print(handler.functions.api({HEALTH!r}, None))", WEB | {"yaml"}),
        (MADE.format("tick"), {"yaml"}),
        (MADE.format("codecommit"), {"yaml"}),
        (MADE.format("worker"), {"handler.cluster", "handler.render", "yaml"}),
    ],
    ids=["webhook", "webhook, a refused delivery", "api", "tick", "codecommit", "worker"],
)
def test_each_function_has_its_own_parts_alone(code: str, own: set[str], tmp_path: Path) -> None:
    assert loaded(code, tmp_path) == own


def test_the_clouds_client_comes_with_the_first_job(tmp_path: Path) -> None:
    right: Any = function_url("POST", "/webhooks/github", github_headers(PUSH), PUSH)
    found = loaded(f"print(handler.functions.webhook({right!r}, None))", tmp_path)
    assert found == WEB | {"yaml", "botocore"}


def test_the_page_loads_no_more_than_the_door_until_somebody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = {
        "url": "https://anneal.example.com",
        "key": {"env": "PAGE_KEY"},
        "tokens": [{"name": "ada", "secret": {"env": "ADA"}}],
        "roles": [{"role": "viewer", "users": ["ada"]}],
    }
    monkeypatch.setitem(CONFIG, "page", page)
    found = loaded(f"assert handler.functions.api({SIGN_IN!r}, None)['statusCode'] == 200", tmp_path)
    assert found == WEB | {"yaml"}
