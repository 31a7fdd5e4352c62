"""The first ten minutes: init, the very commands that it prints, check at 80 columns, folders of others. Real git host and cluster."""

from __future__ import annotations

import shlex
from dataclasses import replace

from tests.e2e.cli.conftest import Shop, document
from tests.kubectl import Kubectl


def test_check_of_a_private_repository_prints_the_credentials_block(shop: Shop) -> None:
    url = shop.host.url_of(shop.work.directory.name)
    shop.host.accounts = {"x-access-token": "canary-token"}
    try:
        git = {row["subject"]: row for row in shop.cli.json("check", code=1)["checks"]}["git"]
        assert "401; credentials: none are configured" in git["problems"][0]["message"]
        pasted = git["problems"][0]["fix"].partition("write in the target: ")[2]
        file = shop.cli.config
        file.write_text(file.read_text().replace(f"repository: {{url: {url}}}", pasted))
        given = replace(shop.cli, environ={"GIT_TOKEN": "canary-token"})
        assert "plan           ok       4 to create" in given("check").stdout
        wrong = replace(shop.cli, environ={"GIT_TOKEN": "another"})("check", code=1).stdout
        assert "401 to our credentials (auth.basic: user x-access-token, password of environment variable GIT_TOKEN)" in wrong
    finally:
        shop.host.accounts = {}


def test_a_namespace_that_isnt_there_is_one_problem_with_its_command(shop: Shop, kubectl: Kubectl) -> None:
    gone = f"{shop.namespace}-gone"
    shop.configure()
    file = shop.cli.config
    file.write_text(
        file.read_text().replace(
            f"namespaces: [{shop.namespace}]\n    namespace: {shop.namespace}", f"namespaces: [{gone}]\n    namespace: {gone}"
        )
    )
    plan = {row["subject"]: row for row in shop.cli.json("check", code=1)["checks"]}["plan"]
    assert len(plan["problems"]) == 1, plan
    (problem,) = plan["problems"]
    assert problem["subject"].endswith(" and 3 more")
    assert problem["message"] == f'“namespaces "{gone}" not found”'
    kubectl.run(*shlex.split(problem["fix"].partition("; or ")[0].removeprefix("create it: "))[1:])
    try:
        shop.cli("check")
    finally:
        kubectl.run("delete", "namespace", gone, "--wait=false")


def test_a_kind_that_isnt_served_hides_no_other_mistake(shop: Shop) -> None:
    shop.work.write("deploy/unserved.yaml", document("Tea", "green", "tea.example.com/v1"))
    shop.work.write(
        "deploy/elsewhere.yaml", document("ConfigMap", "far").replace('"name": "far"', '"name": "far", "namespace": "elsewhere"')
    )
    shop.push("Two mistakes")
    found = {row["subject"]: row for row in shop.cli.json("check", code=1)["checks"]}
    told = "\n".join(problem["message"] for problem in found["plan"]["problems"])
    assert (found["rights"]["verdict"], found["plan"]["verdict"]) == ("ok", "failed")
    assert "tea.example.com/v1" in told
    assert "elsewhere" in told
