"""What osls makes of serverless.yml, without network: the CloudFormation that would be deployed is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handler.functions.gateway import SAFETY
from handler.inspect.plan_questions import PATIENCE
from tests.rooms.functions.test_serverless import FUNCTIONS, checkout, made, of_type, out, run, template  # noqa: F401 - fixtures, too


def test_a_function_runs_as_the_package_was_made_for(made: dict[str, Any]) -> None:
    functions = of_type(made, "Lambda::Function")
    assert {each["Handler"] for each in functions.values()} == {f"handler.functions.{name}" for name in FUNCTIONS}
    for function in functions.values():
        assert (function["Runtime"], function["Architectures"], function["TracingConfig"]) == ("python3.13", ["arm64"], {"Mode": "Active"})
        variables = {"ANNEAL_CONFIG": "/var/task/anneal.yaml", "ANNEAL_QUEUE_URL": {"Ref": "Queue"}}
        assert function["Environment"]["Variables"] == variables
    assert functions["WebhookLambdaFunction"]["Timeout"] == 10
    worker, api = functions["WorkerLambdaFunction"], functions["ApiLambdaFunction"]
    assert api["MemorySize"] == worker["MemorySize"], "it renders for the page what the worker does"
    assert api["Timeout"] > PATIENCE + SAFETY, "a plan may take that long"


def test_the_worker_can_be_an_image(made: dict[str, Any], arm64: Path, tmp_path: Path) -> None:
    uri = f"123456789012.dkr.ecr.eu-central-1.amazonaws.com/anneal@sha256:{'0' * 64}"
    other = template(arm64, tmp_path / "image", "--param", "worker=image", "--param", f"image={uri}", "--param", "concurrency=9")
    worker = of_type(other, "Lambda::Function")["WorkerLambdaFunction"]
    assert (worker["PackageType"], worker["Code"]) == ("Image", {"ImageUri": uri})
    assert worker["ImageConfig"] == {"Command": ["handler.functions.worker"]}
    assert (worker["Architectures"], worker["Timeout"]) == (["arm64"], 300)
    assert of_type(other, "Lambda::EventSourceMapping") == of_type(made, "Lambda::EventSourceMapping")


@pytest.mark.parametrize("command", ["info", "remove"])
def test_what_is_deployed_is_asked_without_a_package(checkout: Path, command: str) -> None:
    done = run(checkout, command, AWS_ENDPOINT_URL="http://127.0.0.1:1")
    assert "Cannot resolve" not in done.stdout + done.stderr
    assert "127.0.0.1:1" in done.stdout + done.stderr, "it had asked for the stack"
