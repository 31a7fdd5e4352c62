"""Locutus' own command lines against a real control plane: its document's, what both generations share, its metrics, and its records."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from handler.cli.group import USAGE
from handler.cli.locutus_flags import NAME, NAMESPACE
from handler.model.errors import Stopping
from handler.model.names import state_name
from tests.e2e.heartbeats import looked_after
from tests.e2e.serve_process import ROOT
from tests.in_process import ran
from tests.kubectl import Kubectl
from tests.locutus import DIRECTORY, FILE, KEY, ONCE, PROGRAMS, RENDERED, ROLLOUT, STAYING
from tests.patience import PATIENCE, until

DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "grafana", "labels": {"app": "grafana"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "grafana"}},
        "template": {
            "metadata": {"labels": {"app": "grafana"}},
            "spec": {"containers": [{"name": "grafana", "image": "grafana/grafana:5.2.0"}]},
        },
    },
}


@dataclass(frozen=True)
class Place:
    """Where the commands are run: beside a tree as the document describes it, and no configuration."""

    directory: Path
    kubeconfig: Path

    def words(self, line: str) -> list[str]:
        return [word.replace("$KUBECONFIG", str(self.kubeconfig)) for word in shlex.split(line)]

    def process(self, line: str) -> list[str]:
        return [sys.executable, "-m", "handler", *self.words(line)]

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "ANNEAL_CONFIG"}
        return {**kept, "PYTHONPATH": str(ROOT), "HOME": str(self.directory), "KUBECONFIG": str(self.kubeconfig)}

    def ran(self, line: str, *more: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        done = ran([*self.words(line), *more], self.environ, self.directory)
        assert done.returncode == code, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def run(self, line: str, *more: str, code: int = 0) -> str:
        """Run a command to its end; return what it printed."""
        return self.ran(line, *more, code=code).stdout

    def json(self, line: str) -> Any:
        return json.loads(self.run(line, "-o", "json"))

    @property
    def manifest(self) -> Path:
        return self.directory / DIRECTORY / KEY

    @contextmanager
    def staying(self, line: str, log: Path) -> Iterator[None]:
        """Run a command until the end of the block; it must end well."""
        with log.open("wb") as said, subprocess.Popen(self.process(line), cwd=self.directory, env=self.environ, stderr=said) as process:
            try:
                yield
            finally:
                process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0, log.read_text()


@pytest.fixture
def nowhere(tmp_path: Path) -> Place:
    """A tree of files, and a kubeconfig that leads nowhere."""
    place = Place(tmp_path, tmp_path / "nowhere")
    place.manifest.parent.mkdir(parents=True)
    place.manifest.write_text(json.dumps(DEPLOYMENT))
    (tmp_path / FILE).write_text(ROLLOUT)
    return place


@pytest.fixture
def place(nowhere: Place, kubectl: Kubectl) -> Iterator[Place]:
    """The same with a cluster; nothing is left behind in the namespace that every cluster has."""
    yield Place(nowhere.directory, kubectl.kubeconfig)
    name = state_name(NAME)
    for what in ("deployment/grafana", f"configmap/{name}", f"lease/{name}"):
        kubectl.tried("delete", what, "-n", NAMESPACE, "--ignore-not-found", "--wait=false")


def lines(log: Path) -> list[dict[str, Any]]:
    """Return what was logged; the last line may be half of one that is being written."""
    whole = [line for line in log.read_text().splitlines(keepends=True) if line.endswith("\n") and line.startswith("{")]
    return [json.loads(line) for line in whole]


def runs(log: Path) -> list[dict[str, Any]]:
    return [line for line in lines(log) if line["message"] == "run" and line.get("code") != Stopping.code]


def scraped(log: Path) -> Callable[[], str]:
    """Wait until a process has logged where its metrics are; return what asks for them."""

    def told() -> list[dict[str, Any]]:
        return [line for line in lines(log) if line["message"] == "listening for metrics"]

    until(told, log.read_text)
    url = f"http://127.0.0.1:{told()[0]['port']}/metrics"

    def ask() -> str:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            text: str = answer.read().decode()
        return text

    return ask


def counted(text: str) -> dict[str, float]:
    """Return Locutus' counts, and ours of the same, from one exposition."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {sample.name: sample.value for sample in samples if sample.name.startswith("rollout_")}
    ends = [(sample.labels["outcome"], sample.value) for sample in samples if sample.name == "anneal_runs_total"]
    return {**found, "runs": sum(value for _, value in ends), "failed": sum(value for outcome, value in ends if outcome == "failed")}


def test_render_only_prints_keys_manifests_and_the_rollout_and_asks_no_cluster(nowhere: Place) -> None:
    printed = nowhere.run(RENDERED)
    assert printed.count("\n") == 1
    assert json.loads(printed) == {"objects": {KEY: DEPLOYMENT}, "rollout": yaml.safe_load(ROLLOUT)}
    bare = re.sub(r"(--renderer\.file\.dir=\S+?)/(?=\s|$)", r"\1", RENDERED).replace("--trigger=", "-trigger ")
    assert bare != RENDERED
    assert nowhere.run(bare, "--render-only=true") == printed, "with and without a slash, one dash or two"
    newer = RENDERED.replace("--trigger=oneoff", "--one-off --qps=5 --burst=10")
    assert nowhere.run(newer) == printed, "the newer generation's spelling"


def test_render_only_prints_at_each_interval_and_no_mistake_ends_it(nowhere: Place, tmp_path: Path) -> None:
    log, printed = tmp_path / "log", tmp_path / "printed"
    command = nowhere.process(RENDERED.replace("--trigger=oneoff", "--trigger.interval.duration=1s"))
    with (
        log.open("wb") as said,
        printed.open("wb") as out,
        subprocess.Popen(command, cwd=nowhere.directory, env=nowhere.environ, stderr=said, stdout=out) as process,
    ):
        try:
            until(lambda: printed.read_text().count("\n") >= 2, log.read_text)
            nowhere.manifest.write_text("{")
            until(lambda: KEY in log.read_text(), log.read_text)
            nowhere.manifest.write_text(json.dumps(DEPLOYMENT | {"kind": "StatefulSet"}))
            until(lambda: "StatefulSet" in printed.read_text(), log.read_text)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_a_program_is_rolled_out_as_it_says(place: Place) -> None:
    program = place.directory / "example" / "jsonnet" / "main.jsonnet"
    program.parent.mkdir(parents=True)
    rollout = {**yaml.safe_load(ROLLOUT), "spec": {"groups": [{"steps": [{"object": "deployment", "action": "CreateOrUpdate"}]}]}}
    program.write_text(f"{{ objects: {{ deployment: {json.dumps(DEPLOYMENT)} }}, rollout: {json.dumps(rollout)} }}")
    line = PROGRAMS[0].removesuffix(" --render-only")
    assert f"Deployment/{NAMESPACE}/grafana created" in place.run(line)
    assert json.loads(place.run(line, "-o", "json"))["counts"] == {"unchanged": 1}


def test_once_applies_and_ends_and_at_an_interval_it_stays_as_declared(place: Place, kubectl: Kubectl, tmp_path: Path) -> None:
    def uid() -> str:
        return kubectl.tried("get", "deployment", "grafana", "-n", NAMESPACE, "-o", "jsonpath={.metadata.uid}").stdout

    assert f"Deployment/{NAMESPACE}/grafana created" in place.run(ONCE)
    found = kubectl("get", "deployment", "grafana", "-n", NAMESPACE)
    kubectl.run("delete", "deployment", "grafana", "-n", NAMESPACE)
    log = tmp_path / "log"
    with place.staying(f"{STAYING} -trigger.interval.duration=1s", log):
        until(lambda: uid() not in ("", found["metadata"]["uid"]), log.read_text)
        kubectl.run("delete", "deployment", "grafana", "-n", NAMESPACE)
        until(uid, log.read_text)
        until(lambda: NAME in looked_after(kubectl, NAMESPACE), log.read_text)
    lease = kubectl("get", "lease", state_name(NAME), "-n", NAMESPACE)
    assert not lease["spec"].get("holderIdentity"), "given back"
    again = json.loads(place.run(ONCE, "-o", "json"))
    assert again["counts"] == {"unchanged": 1}


def test_a_duration_alone_is_an_interval_and_its_runs_are_counted_by_both_names(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "log"
    line = STAYING.replace("--trigger=interval", "--trigger.interval.duration=1s --web.listen=127.0.0.1:0")
    with place.staying(line, log):
        ask = scraped(log)

        def reaches(executions: int, failed: int) -> bool:
            """Whether so many were counted; what both tools count of one run is shown together a moment later, as is its line."""
            found = counted(ask())
            logged = [run["outcome"] for run in runs(log)]
            theirs = (found["rollout_executions_total"], found["rollout_executions_failed_total"])
            whole = theirs == (found["runs"], found["failed"]) == (len(logged), logged.count("failed"))
            return whole and theirs[0] >= executions and theirs[1] >= failed

        until(lambda: reaches(2, 0), log.read_text)
        assert counted(ask())["rollout_executions_failed_total"] == 0
        place.manifest.write_text("{")
        until(lambda: reaches(3, 1), log.read_text)
        text = ask()
    for name, kind in (
        ("rollout_executions_total", "counter"),
        ("rollout_executions_failed_total", "counter"),
        ("rollout_execution_duration_seconds", "summary"),
        ("process_resident_memory_bytes", "gauge"),
        ("anneal_runs_total", "counter"),
    ):
        assert f"# TYPE {name} {kind}\n" in text
    assert "# HELP rollout_executions_total Total number of times rollouts have been executed.\n" in text


def test_without_flags_of_files_it_reads_manifests_and_rollout_yaml(place: Place, kubectl: Kubectl, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    bare = Place(empty, place.kubeconfig)
    refused = bare.ran("locutus --one-off", code=USAGE).stderr
    assert "--renderer.file.dir: expected a directory, found none at manifests, the default" in refused
    (empty / "manifests" / KEY).parent.mkdir(parents=True)
    (empty / "manifests" / KEY).write_text(json.dumps(DEPLOYMENT))
    assert "no trigger is named" in bare.ran("locutus", code=USAGE).stderr, "a directory isn't rolled out because a flag is missing"
    assert json.loads(bare.run("locutus --render-only"))["rollout"] is None
    (empty / "rollout.yaml").write_text(ROLLOUT)
    assert json.loads(bare.run("locutus --render-only"))["rollout"]["metadata"]["name"] == "grafana-rollout-0"
    done = bare.ran("locutus --one-off --qps 5 --web.listen 127.0.0.1:0")
    assert f"Deployment/{NAMESPACE}/grafana created" in done.stdout
    assert done.stderr.count("without effect: --qps;") == 1
    (step,) = bare.json(f"rollout {NAME}")["rollout"]["steps"]
    assert (step["object"], step["outcome"]) == (f"Deployment/{NAMESPACE}/grafana", "done")
    said = bare.ran("locutus --one-off --web.listen 127.0.0.1:0 --renderer.file.rollout=missing.yaml", code=USAGE).stderr
    assert "--renderer.file.rollout: expected a file, found none at missing.yaml" in said


def told_apart(place: Place, kubectl: Kubectl, namespace: str) -> None:
    """Deploy another one of the same name; both are shown by their qualified names, until one is a repository's."""
    other = place.directory / "other"
    other.mkdir()
    (other / "one.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}")
    place.run(f"apply -f other --name {NAME} -n {namespace} --state-namespace {namespace} -y")
    assert f"no target '{NAME}'" in place.ran(f"status {NAME}", code=USAGE).stderr
    ours, theirs = f"{NAMESPACE}/{NAME}", f"{namespace}/{NAME}"
    for qualified in (ours, theirs):
        assert place.run(f"status {qualified}").startswith(f"{qualified}: applied")
    assert [run["counts"] for run in place.json(f"history {theirs}")["runs"]] == [{"created": 1}]
    record = kubectl("get", "configmap", state_name(NAME), "-n", namespace)
    record["data"]["repository"] = "https://git.example.com/acme/shop.git"
    record["metadata"]["annotations"].pop("anneal.dev/summary")
    kubectl.run("replace", "-f", "-", given=json.dumps(record))
    assert place.run(f"status {NAME}").startswith(f"{NAME}: applied"), "the other one is a repository's now"


def shown_by_rights_in_one_namespace(account: Place, kubectl: Kubectl, namespace: str) -> None:
    """Without any, what lacks is said; with some, its record is shown."""
    refused = account.ran("status", code=1).stderr
    assert "found neither" in refused
    assert "configmaps" in refused
    role = f"{namespace}-reads"
    kubectl.run("create", "role", role, "-n", NAMESPACE, "--verb=get,list", "--resource=configmaps,leases.coordination.k8s.io")
    kubectl.run("create", "rolebinding", role, "-n", NAMESPACE, f"--role={role}", f"--serviceaccount={namespace}:reader")
    try:
        kubectl.judges(f"{namespace}/reader", verb="list", group="", resource="configmaps", namespace=NAMESPACE)
        assert [row["phase"] for row in account.json("status")["targets"]] == ["applied"]
        assert "whether the record is of this cluster isn't known" in account.run(f"status {NAME}")
        assert [run["outcome"] for run in account.json(f"history {NAME}")["runs"]] == ["applied"]
    finally:
        kubectl.run("delete", "role,rolebinding", role, "-n", NAMESPACE)


def test_an_instance_without_a_configuration_is_shown(place: Place, kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    place.run(ONCE)
    assert [row["phase"] for row in place.json("status")["targets"]] == ["applied"]
    assert place.run(f"status {NAME}").startswith(f"{NAME}: applied")
    assert place.json(f"status {NAME}")["state"]["commit"]
    assert "grafana" in place.run(f"rollout {NAME}")
    assert [run["outcome"] for run in place.json(f"history {NAME}")["runs"]] == ["applied"]
    assert f"{NAME}: it was free" in place.run(f"unlock {NAME}")
    assert "did you mean locutus?" in place.ran("status locutsu", code=USAGE).stderr
    assert "found neither" in place.ran(f"plan {NAME}", code=1).stderr, "what needs settings has none"
    shown_by_rights_in_one_namespace(Place(place.directory, kubectl.account(f"{namespace}/reader", tmp_path)), kubectl, namespace)
    told_apart(place, kubectl, namespace)
    place.manifest.write_text("{")
    place.run(ONCE, code=1)
    told = place.run(f"status {NAME}")
    assert "mend the files as said below" in told
    assert "anneal apply" not in told, "no command that needs a configuration"
    assert "--web.listen 192.0.2.1:80: can't listen there" in place.ran(ONCE, "--web.listen=192.0.2.1:80", code=1).stderr
    nowhere = Place(place.directory, tmp_path / "nowhere").ran("status", code=1).stderr
    assert nowhere.startswith("configuration: found neither"), "what is missing is told before the cluster that can't be reached"
