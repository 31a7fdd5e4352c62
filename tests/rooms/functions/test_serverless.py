"""What osls makes of serverless.yml, without network: the CloudFormation that would be deployed is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.packing import ROOT

FUNCTIONS = ("webhook", "worker", "tick", "codecommit", "api")
QUEUE, DEAD = {"Fn::GetAtt": ["Queue", "Arn"]}, {"Fn::GetAtt": ["DeadLetters", "Arn"]}
SEND = {"sqs:SendMessage"}
TAKE = SEND | {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"}
READS = {
    "webhook": {"secretsmanager:GetSecretValue"},
    "worker": {"secretsmanager:GetSecretValue", "eks:DescribeCluster", "sts:AssumeRole"},
    "tick": {"eks:DescribeCluster", "sts:AssumeRole"},
    "codecommit": set[str](),
    "api": {"ssm:GetParameter", "secretsmanager:GetSecretValue", "eks:DescribeCluster", "sts:AssumeRole"},
}
TOPIC = "arn:aws:sns:eu-central-1:123456789012:ops"
ENVIRON = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-not-a-secret", "AWS_EC2_METADATA_DISABLED": "true"}


@cache
def offline() -> tuple[str, ...]:
    """Return what cuts a command off the network, where this machine lets us."""
    command = ("unshare", "-rn")
    allowed = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if allowed else ()


def osls(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/osls package in a checkout."""
    return run(root, "package", *options)


def run(root: Path, *options: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/osls in a checkout, off the network. `more`: environment variables."""
    subprocess.run([root / "scripts" / "osls", "--version"], check=True, capture_output=True)  # installed, once, with the network there is
    environ = {**{name: value for name, value in os.environ.items() if not name.startswith("AWS_")}, **ENVIRON, **more}
    command = [*offline(), str(root / "scripts" / "osls"), *options, "--region", "eu-central-1"]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def template(package: Path, out: Path, *options: str) -> dict[str, Any]:
    done = osls(ROOT, "--param", f"package={package.with_suffix('.json')}", "-p", str(out), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    loaded: dict[str, Any] = json.loads((out / "cloudformation-template-update-stack.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where osls puts what it makes for `made`."""
    return tmp_path_factory.mktemp("url")


@pytest.fixture(scope="module")
def made(arm64: Path, out: Path) -> dict[str, Any]:
    return template(arm64, out, "--param", f"alarmTopic={TOPIC}", "--param", "concurrency=9")


def of_type(made: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name: each["Properties"] for name, each in made["Resources"].items() if each["Type"] == f"AWS::{kind}"}


def statements(made: dict[str, Any], function: str) -> list[dict[str, Any]]:
    """Return all that a function's role allows, whichever policy says it."""
    role = f"{function.title()}Role"
    own = made["Resources"][role]["Properties"]["Policies"]
    attached = [each for each in of_type(made, "IAM::Policy").values() if {"Ref": role} in each["Roles"]]
    return [each for policy in (*own, *attached) for each in policy["PolicyDocument"]["Statement"]]


def actions(statement: dict[str, Any]) -> set[str]:
    found = statement["Action"]
    return {found} if isinstance(found, str) else set(found)


def test_each_function_has_a_role_of_its_own_with_what_it_does_and_no_more(made: dict[str, Any]) -> None:
    roles = {each["Handler"].rpartition(".")[2]: each["Role"] for each in of_type(made, "Lambda::Function").values()}
    assert roles == {name: {"Fn::GetAtt": [f"{name.title()}Role", "Arn"]} for name in FUNCTIONS}
    assert set(of_type(made, "IAM::Role")) == {f"{name.title()}Role" for name in FUNCTIONS}
    for name in FUNCTIONS:
        own = {"logs:CreateLogStream", "logs:PutLogEvents", "xray:PutTraceSegments", "xray:PutTelemetryRecords"}
        key = set() if name == "codecommit" else {"kms:Decrypt"}  # its condition: a key was named
        found = set[str]().union(*map(actions, statements(made, name)))
        assert found == own | READS[name] | key | (TAKE if name == "worker" else SEND)


def test_no_iam_statement_has_an_avoidable_wildcard(made: dict[str, Any]) -> None:
    for name in FUNCTIONS:
        for statement in statements(made, name):
            assert statement["Effect"] == "Allow"
            assert not [action for action in actions(statement) if "*" in action]
            if actions(statement) == {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}:
                continue  # they know no resource
            found = statement["Resource"]
            assert "*" not in (found if isinstance(found, list) else [found])
            if actions(statement) & TAKE:
                assert found == QUEUE
            if "logs:PutLogEvents" in actions(statement):
                assert found["Fn::Sub"].endswith(f":log-group:/aws/lambda/anneal-prod-{name}:*")
    assert made["Resources"]["KeyUse"]["Condition"] == "HasKey"
    assert made["Conditions"]["HasKey"] == {"Fn::Not": [{"Fn::Equals": ["", ""]}]}


def test_the_stack_can_be_created(made: dict[str, Any], out: Path) -> None:
    """osls creates it from a template of its own, and sends ours as its first update: both get the same stack parameters."""
    sent = json.loads((out / "serverless-state.json").read_text())["service"]["provider"].get("stackParameters", [])
    for each in (made, json.loads((out / "cloudformation-template-create-stack.json").read_text())):
        assert {parameter["ParameterKey"] for parameter in sent} == set(each.get("Parameters", {}))


def test_the_queue_is_fifo_with_a_dead_letter_queue(made: dict[str, Any]) -> None:
    queue, dead = (of_type(made, "SQS::Queue")[name] for name in ("Queue", "DeadLetters"))
    for each in (queue, dead):
        assert each["FifoQueue"] is True
        assert each["SqsManagedSseEnabled"] is True
        assert each["QueueName"].endswith(".fifo")
    assert queue["ContentBasedDeduplication"] is False
    assert queue["RedrivePolicy"] == {"deadLetterTargetArn": DEAD, "maxReceiveCount": 5}
    assert queue["VisibilityTimeout"] >= 6 * of_type(made, "Lambda::Function")["WorkerLambdaFunction"]["Timeout"]
    assert dead["MessageRetentionPeriod"] == 14 * 24 * 3600


def test_the_worker_takes_one_message_and_the_rest_is_asked_by_events(made: dict[str, Any]) -> None:
    (mapping,) = of_type(made, "Lambda::EventSourceMapping").values()
    assert (mapping["BatchSize"], mapping["EventSourceArn"]) == (1, QUEUE)
    assert mapping["FunctionName"] == {"Fn::GetAtt": ["WorkerLambdaFunction", "Arn"]}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 9}
    rules = {each["Targets"][0]["Arn"]["Fn::GetAtt"][0]: each for each in of_type(made, "Events::Rule").values()}
    assert rules["TickLambdaFunction"]["ScheduleExpression"] == "rate(1 minute)"
    pattern = rules["CodecommitLambdaFunction"]["EventPattern"]
    assert (pattern["source"], pattern["detail-type"]) == (["aws.codecommit"], ["CodeCommit Repository State Change"])


def test_cloudwatch_alarms_watch_errors_dead_letters_and_queue_age(made: dict[str, Any]) -> None:
    alarms = of_type(made, "CloudWatch::Alarm")
    watched = {(each["MetricName"], json.dumps(each["Dimensions"][0]["Value"])) for each in alarms.values()}
    depth, age = "ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"
    queues = {(depth, "DeadLetters"), (age, "Queue")}
    wanted = {("Errors", name) for name in FUNCTIONS} | {("Url5xxCount", name) for name in ("webhook", "api")}
    assert watched == {(metric, json.dumps({"Fn::GetAtt": [name, "QueueName"]})) for metric, name in queues} | {
        (metric, json.dumps(f"anneal-prod-{name}")) for metric, name in wanted
    }
    assert {(each["EvaluationPeriods"], each["TreatMissingData"], json.dumps(each["AlarmActions"])) for each in alarms.values()} == {
        (1, "notBreaching", json.dumps({"Fn::If": ["HasTopic", [TOPIC], {"Ref": "AWS::NoValue"}]}))
    }
    assert made["Conditions"]["HasTopic"] == {"Fn::Not": [{"Fn::Equals": [TOPIC, ""]}]}
    oldest = alarms["OldestMessageAlarm"]
    assert (oldest["Threshold"], oldest["Period"]) == (15 * 60, 60)


def test_the_log_groups_have_a_retention(made: dict[str, Any]) -> None:
    groups = of_type(made, "Logs::LogGroup").values()
    assert {each["LogGroupName"]: each["RetentionInDays"] for each in groups} == {
        f"/aws/lambda/anneal-prod-{name}": 30 for name in FUNCTIONS
    }


def test_two_functions_have_a_lambda_url_or_an_http_api(made: dict[str, Any], arm64: Path, tmp_path: Path) -> None:
    assert set(of_type(made, "Lambda::Url")) == {"WebhookLambdaFunctionUrl", "ApiLambdaFunctionUrl"}
    assert of_type(made, "ApiGatewayV2::Api") == {}
    other = template(arm64, tmp_path / "http", "--param", "door=httpApi", "--param", "doors=20", "--param", "kmsKey=arn:aws:kms:a:1:key/b")
    assert of_type(other, "Lambda::Url") == {}
    answers = of_type(other, "CloudWatch::Alarm")["AnswersAlarm"]
    assert (answers["MetricName"], answers["Dimensions"]) == ("5xx", [{"Name": "ApiId", "Value": {"Ref": "HttpApi"}}])
    at_once = {each["Handler"]: each.get("ReservedConcurrentExecutions") for each in of_type(other, "Lambda::Function").values()}
    doors = {f"handler.functions.{name}" for name in ("webhook", "api")}
    assert at_once == {f"handler.functions.{name}": 20 if f"handler.functions.{name}" in doors else None for name in FUNCTIONS}
    assert not any("ReservedConcurrentExecutions" in each for each in of_type(made, "Lambda::Function").values())
    assert other["Conditions"]["HasKey"] == {"Fn::Not": [{"Fn::Equals": ["arn:aws:kms:a:1:key/b", ""]}]}
    (statement,) = other["Resources"]["KeyUse"]["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Resource"] == "arn:aws:kms:a:1:key/b"
    api = of_type(other, "Lambda::Function")["ApiLambdaFunction"]
    assert api["Timeout"] < 30, "an HTTP API waits no longer"
    routes = {each["RouteKey"] for each in of_type(other, "ApiGatewayV2::Route").values()}
    assert routes == {"POST /webhooks/{provider}", "$default"}


@pytest.fixture
def checkout(tmp_path: Path, arm64: Path) -> Path:
    """A checkout of what osls reads."""
    for name in ("scripts/osls", "serverless.yml", "infra/package.json", "infra/package-lock.json", "infra/.npmrc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "infra" / "functions", tmp_path / "infra" / "functions")
    return tmp_path


def test_an_unknown_property_fails_osls(checkout: Path, arm64: Path) -> None:
    path = checkout / "infra" / "functions" / "worker.yml"
    path.write_text(path.read_text().replace("batchSize: 1\n", "batchSize: 1\n        batchSise: 1\n"))
    done = osls(checkout, "--param", f"package={arm64.with_suffix('.json')}")
    assert done.returncode != 0
    assert "unrecognized property 'batchSise'" in done.stdout + done.stderr


def test_without_a_package_it_says_how_to_make_one(checkout: Path) -> None:
    done = osls(checkout)
    assert done.returncode == 1
    assert "scripts/package --config FILE" in done.stderr
