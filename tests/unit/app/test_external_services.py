"""The table of places: every remote reference has its row, and nothing is loaded or asked before its turn."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from handler.app.build import Handler, Options
from handler.app.external_services import PLACES, ExternalServices
from handler.config.git_settings import AwsSecret, Repository, SecretRef
from handler.config.secrets import resolve_all
from handler.config.settings import Cluster, Eks, Settings, Target
from handler.model.errors import AnnealError, ClusterUnavailable, SecretUnavailable
from handler.model.event import Job
from handler.model.result import Outcome
from handler.render.sandbox import Sandbox
from tests.patience import PATIENCE
from tests.unit.cluster.kubeconfig_in_a_secret import kubeconfig

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]


def test_every_remote_secret_store_has_a_row_and_no_other() -> None:
    assert set(PLACES) == {each.name for each in fields(SecretRef)} - {"env", "file"}


def test_environment_and_files_are_no_remote_secret_store() -> None:
    for ref in (SecretRef(env="A"), SecretRef(file="/a"), SecretRef()):
        with pytest.raises(SecretUnavailable, match="no store is asked"):
            ExternalServices({}).fetch(ref)


def test_nothing_is_loaded_before_it_is_asked() -> None:
    code = "import sys, handler.app.external_services as s; s.ExternalServices({}).aws; s.ExternalServices({}).eks;"
    code += "print(sorted({'boto3', 'botocore', 'kubernetes', 'urllib3'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout == "[]\n"


def target(name: str, cluster: Cluster) -> Target:
    return Target(name, Repository(f"https://git.example.com/{name}.git"), (name,), cluster=cluster)


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "CANARY-key", "AWS_REGION": "eu-central-1"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(
    ("broken", "kind", "said"),
    [
        (Cluster(eks=Eks("prod")), ClusterUnavailable, "EKS cluster prod: can't be looked up: AWS"),
        (
            Cluster(kubeconfig=SecretRef(aws_secrets_manager=AwsSecret("prod"))),
            SecretUnavailable,
            "AWS secret prod: can't be looked up",
        ),
    ],
    ids=["eks", "kubeconfig"],
)
def test_a_kubeconfig_whose_store_hangs_delays_its_own_cluster_alone(
    broken: Cluster, kind: type[AnnealError], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile one target connects, and another, whose kubeconfig is missing, fails by itself."""
    missing, sound = (Cluster(kubeconfig=SecretRef(env=name)) for name in ("NOWHERE", "SOUND"))
    settings = Settings((target("broken", broken), target("missing", missing), target("sound", sound)))
    failures: list[AnnealError] = []
    monkeypatch.setattr("handler.aws.clients.ATTEMPTS", 1)
    monkeypatch.setattr("handler.aws.clients.READ", 60.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        environ = {**os.environ, "SOUND": kubeconfig("https://sound")}
        handler = Handler(settings, resolve_all(settings, environ), Sandbox(), environ)

        def connect() -> None:
            try:
                handler.api(settings.targets[0])
            except AnnealError as error:
                failures.append(error)

        hanging = threading.Thread(target=connect)
        hanging.start()
        asked, _ = server.accept()  # Amazon is being asked, and doesn't answer
        assert handler.api(settings.targets[2]).connection.host == "https://sound"
        result = handler.run(Job("missing", "push"))
        assert (result.outcome, result.code) == (Outcome.FAILED, "secret-unavailable")
        assert "environment variable NOWHERE: is not set" in result.message
        assert hanging.is_alive()
        asked.close()
    hanging.join(PATIENCE)
    assert [type(error) for error in failures] == [kind]
    assert str(failures[0]).startswith(said)
    assert "CANARY" not in repr(failures)


def test_what_is_made_grows_under_the_lock_that_counts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = target("shop", Cluster(kubeconfig=SecretRef(env="SOUND")))
    handler = Handler(Settings((shop,)), resolve_all(Settings(()), {}), Sandbox(), {})

    class Guarded(dict[Any, Any]):
        def __setitem__(self, key: Any, value: Any) -> None:
            assert handler._lock.locked()
            super().__setitem__(key, value)

    class Cluster1:
        def cluster_uid(self) -> str:
            return "one"

    monkeypatch.setattr(handler, "_made", Guarded())
    monkeypatch.setattr(handler, "records", lambda _: Cluster1())
    assert handler.cluster_uid(shop) == "one"
    assert handler.requests() == 0


def test_what_a_worker_asks_it_asks_by_one_way() -> None:
    services = ExternalServices({})
    handler = Handler(Settings(()), resolve_all(Settings(()), {}), Sandbox(), {}, services=services)
    assert handler._services is services


@pytest.mark.parametrize(("terminal", "least", "most"), [(True, 0.0, 1.0), (False, 10.0, 30.0)])
def test_a_person_at_a_terminal_waits_for_no_cluster_that_takes_no_connection(
    terminal: bool, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("handler.cluster.api.time", SimpleNamespace(monotonic=lambda: sum(slept), sleep=slept.append))
    monkeypatch.setenv("DOWN", kubeconfig("http://127.0.0.1:1"))
    shop = target("shop", Cluster(kubeconfig=SecretRef(env="DOWN")))
    settings = Settings((shop,))
    handler = Handler(settings, resolve_all(settings, os.environ), Sandbox(), os.environ, Options(terminal=terminal))
    result = handler.run(Job("shop", "manual"))
    assert (result.outcome, result.code) == (Outcome.FAILED, ClusterUnavailable.code)
    assert least <= sum(slept) <= most
