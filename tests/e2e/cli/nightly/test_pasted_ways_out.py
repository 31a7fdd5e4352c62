"""Ways out are pasted as they are printed, and then it works: a person's shell, a real cluster and a real git host."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.cli.check import _account
from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.config.settings import Cluster
from tests.e2e.cli.conftest import Shop, document
from tests.e2e.cli.incident_shell import Night
from tests.kubectl import Kubectl


@pytest.fixture
def night(shop: Shop, kubectl: Kubectl, tmp_path: Path) -> Night:
    """The shell."""
    return Night(shop, kubectl, tmp_path)


def paste(shop: Shop, settings: str) -> None:
    """Write settings into the target, as they were printed."""
    config = yaml.safe_load(shop.cli.config.read_text())
    config["targets"][0].update(yaml.safe_load(settings))
    shop.cli.config.write_text(yaml.safe_dump(config))


def test_who_may_grant_rights_gives_them_to_the_account_that_lacks_them(night: Night) -> None:
    shop, name = night.shop, night.shop.namespace
    assert _account(Api(connect(Cluster(), kubeconfig=str(shop.cli.kubeconfig), environ={})))[1][0] == "--user"
    powerless = night.kubectl.account(f"{name}/robot", night.place)
    shop.cli.config.write_text(shop.cli.config.read_text().replace("name: shop", f"name: {name}", 1))
    flags = ("-c", str(shop.cli.config), "--kubeconfig", str(powerless))
    (row,) = [row for row in shop.cli.json(*flags, "check", code=1)["checks"] if row["subject"] == "rights"]
    (fix,) = {problem["fix"] for problem in row["problems"]}
    said, _, command = shop.cli(*flags, "check", code=1).stdout.partition("a person who may grant it gives ")[2].partition(": anneal ")
    assert said.startswith(f"system:serviceaccount:{name}:robot exactly this, ADMIN being"), fix
    try:
        pasted = f"anneal {command.splitlines()[0]}"
        night.types(pasted.replace("ADMIN", shlex.quote(str(shop.cli.kubeconfig))))
        night.kubectl.judges(f"{name}/robot", verb="create", resource="secrets", namespace=name, allows=True)
        assert shop.cli.json(*flags, "apply")["counts"] == {"created": 4}
    finally:
        night.kubectl.run("delete", "clusterrole,clusterrolebinding", f"anneal-{name}", "--ignore-not-found")


@pytest.mark.parametrize("file", ["deploy/web.jsonnet", "deploy/environments/prod/main.jsonnet"])
def test_a_directory_that_jsonnet_alone_would_render_is_rendered_by_the_setting_that_is_printed(shop: Shop, file: str) -> None:
    shop.work.remove("deploy")
    shop.work.write(file, f"[{document('ConfigMap', 'a')}, {document('ConfigMap', 'b')}]")
    shop.push("A program")
    (problem,) = shop.cli.json("plan", code=1)["problems"]
    (setting,) = re.findall("^write ([^;]+); or", problem["fix"])
    paste(shop, setting)
    assert shop.cli.json("apply")["counts"] == {"created": 2}


ODD = ["a\\b.yaml", "a\nb.yaml", "-a\u2028.yaml", "\udcff.yaml", "u\u0308.yaml", "One.yaml", "it's `a\\b.yaml"]
"""Names of files: a backslash, a line break, signs that break lines, no UTF-8, another normal form, another case, quotes."""


def test_a_file_whose_name_no_other_system_could_hold_is_renamed_by_the_command_that_is_printed(night: Night) -> None:
    shop = night.shop
    for name in ODD:
        shop.declare("one", "two", "three")
        shop.work.write(f"deploy/{name}", document("ConfigMap", "odd"))
        shop.push("An odd name")
        (problem,) = shop.cli.json("plan", code=1)["problems"]
        night.types(f"cd {shlex.quote(str(shop.work.directory))} && {problem['fix'].removeprefix('in a checkout: ')}")
        shop.push("Renamed")
        assert shop.cli.json("apply")["counts"] == ({"created": 5} if name == ODD[0] else {"unchanged": 5})


CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-a\n",
}
KUSTOMIZE = {"kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n", "a.yaml": document("ConfigMap", "a")}


def refused(shop: Shop, gone: str, files: dict[str, str]) -> dict[str, Any]:
    """Return why a commit is refused that has a folder of these files, and no more what lay at `gone`."""
    shop.work.remove(gone)
    for name, text in files.items():
        shop.work.write(f"deploy/web/{name}", text)
    shop.push("A folder")
    problems: list[dict[str, Any]] = shop.cli.json("plan", code=1)["problems"]
    return problems[0]


@pytest.mark.parametrize("files", [CHART, KUSTOMIZE], ids=["chart", "kustomize"])
def test_a_folder_that_another_program_renders_is_deployed_by_either_way_out(night: Night, renderers: Path, files: dict[str, str]) -> None:
    shop = night.shop
    problem = refused(shop, "deploy/three.yaml", files)
    leaving, rest = problem["fix"].removeprefix("leave it out here: ").split("; to deploy it let another target render it: ")
    other, made = rest.split("; or commit what this prints: ")
    within = f"export PATH={shlex.quote(str(renderers))}:$PATH && cd {shlex.quote(str(shop.work.directory))} && "
    night.types(within + leaving)
    shop.push("Left out")
    assert shop.cli.json("apply")["counts"] == {"created": 3}
    config = yaml.safe_load(shop.cli.config.read_text())
    config["targets"].append({**config["targets"][0], "name": "other", **yaml.safe_load(other), "sandbox": "weak"})
    shop.cli.config.write_text(yaml.safe_dump(config))
    assert "1 to create" in shop.cli("plan", "other").stdout
    night.types(within + made)
    shop.push("Committed what it prints")
    assert shop.cli.json("apply", "shop")["counts"] == {"created": 1, "unchanged": 3}


@pytest.mark.parametrize("files", [CHART, KUSTOMIZE], ids=["chart", "kustomize"])
def test_a_path_that_another_program_renders_is_named_or_committed_as_it_is_printed(
    night: Night, renderers: Path, files: dict[str, str]
) -> None:
    shop = night.shop
    problem = refused(shop, "deploy", files)
    own, apart, made = re.findall("write (path: [^;]+); or write (path: [^;]+), and commit what this prints: (.+)", problem["fix"])[0]
    paste(shop, own)
    paste(shop, "sandbox: weak")
    assert "1 to create" in shop.cli("plan").stdout
    night.types(f"export PATH={shlex.quote(str(renderers))}:$PATH && cd {shlex.quote(str(shop.work.directory))} && {made}")
    shop.push("Committed what it prints")
    paste(shop, apart)
    assert shop.cli.json("apply")["counts"] == {"created": 1}


NAMES_VARIABLES = "postBuild: {substituteFrom: [{kind: Secret, name: vars}]}"
POD = {"serviceAccountName": "runner", "containers": [{"name": "main", "image": "a:1"}]}
SETTING, DOCUMENT, COMMAND, ANNOTATION = "setting", "document", "command", "annotation"
PRINTED: dict[str, tuple[str, str, str, str]] = {
    "a kind": ("ClusterRole", "", r"add to target shop: (clusterScoped: .+)", SETTING),
    "an account": ("Pod", "", r"declare it in the same path: ({.+}); or", DOCUMENT),
    "a namespace": ("elsewhere", "", r"create it: (kubectl create namespace [^;]+);", COMMAND),
    "a variable": ("${N}", "postBuild: {substitute: {A: a}}", r"add (postBuild: .+) to the target", SETTING),
    "variables": ("${NAME}", NAMES_VARIABLES, r"create it: (kubectl create secret .+); or", COMMAND),
    "immutable data": ("immutable", "", r"annotate it (\S+: \S+), or", ANNOTATION),
    "immutable data, by option": ("immutable", "", r"or add to target shop: (.+)", SETTING),
    "the path": ("gone", "prune: {allowEmpty: true}", r"without manifests: (.+)", COMMAND),
}
"""What is lacking -> what git declares, settings before, what is printed, and what it is."""


def lacks(shop: Shop, what: str) -> str:
    """Have git declare what lacks something; return the file."""
    name, file = shop.namespace, "deploy/odd.yaml"
    data: dict[str, Any] = {"data": {"value": "1" if what == "immutable" else what}}
    if what == "ClusterRole":
        shop.work.write(file, document(what, name, "rbac.authorization.k8s.io/v1", rules=[]))
    elif what == "Pod":
        shop.work.write(file, document(what, "odd", spec=POD))
    elif what == "elsewhere":
        shop.cli.config.write_text(shop.cli.config.read_text().replace(f"namespaces: [{name}]", f"namespaces: [{name}, {name}-x]"))
        shop.work.write(file, json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd", "namespace": f"{name}-x"}}))
    elif what == "immutable":
        shop.work.write(file, document("ConfigMap", "odd", immutable=True, **data))
        shop.push("Immutable")
        shop.cli("apply")
        shop.work.write(file, document("ConfigMap", "odd", immutable=True, data={"value": "2"}))
    elif what == "gone":
        shop.cli("apply")
        shop.work.remove("deploy")
        shop.work.write("README.md", "nothing is left")
    else:
        shop.work.write(file, document("ConfigMap", "odd", **data))
    return file


@pytest.mark.parametrize("lacking", PRINTED)
def test_what_is_printed_for_what_is_lacking_works_pasted(night: Night, lacking: str) -> None:
    shop, (what, settings, printed, kind) = night.shop, PRINTED[lacking]
    shop.configure(settings)
    file = lacks(shop, what)
    shop.push("Something is lacking")
    (problem,) = shop.cli.json("apply", code=1)["problems"]
    ((way,),) = [found.groups() for found in re.finditer(printed, problem["fix"])]
    try:
        if kind == SETTING:
            paste(shop, way.replace("…", "text"))
        elif kind == DOCUMENT:
            shop.work.write("deploy/printed.yaml", way)
        elif kind == ANNOTATION:
            body = json.loads((shop.work.directory / file).read_text())
            shop.work.write(file, json.dumps({**body, "metadata": {**body["metadata"], "annotations": yaml.safe_load(way)}}))
        else:
            night.types(f"cd {shlex.quote(str(shop.work.directory))} && {way}")
        shop.push("As it was printed")
        if "allowEmpty" in settings:  # it is allowed by its printed command, too
            night.types(shop.cli("apply", code=3).stdout.partition("allow exactly that: ")[2].splitlines()[0])
        shop.cli("apply")
        assert "to create" not in shop.cli("plan").stdout
    finally:
        night.kubectl.run("delete", "clusterrole,namespace", shop.namespace, f"{shop.namespace}-x", "--ignore-not-found", "--wait=false")
