"""The command line against a real cluster and a real git host: what people type, what they read, what a script gets."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.cli.conftest import Shop, document
from tests.kubectl import Kubectl


def test_a_target_is_checked_planned_applied_and_found_unchanged(shop: Shop, kubectl: Kubectl) -> None:
    checked = shop.cli("check").stdout.splitlines()
    subjects = ("configuration", "webhooks", "credentials", "queue", "git", "cluster", "render", "rights", "plan")
    assert [line.split()[:2] for line in checked[1:]] == [[subject, "ok"] for subject in subjects]
    assert "4 to create" in checked[-1]
    assert "anneal apply shop" in shop.cli("status", "shop").stdout
    assert shop.cli("plan", "--exit-code", code=2).stdout.splitlines()[-1].endswith("4 to create")
    assert kubectl("get", "cm,secret", "-n", shop.namespace, "-l", "applyset.kubernetes.io/part-of")["items"] == [], "nothing was written"
    applied = shop.cli("apply").stdout.splitlines()
    assert f"ConfigMap/{shop.namespace}/one created" in applied
    assert ": applied " in applied[-1]
    assert "unchanged" in shop.cli("apply").stdout
    assert shop.cli("plan", "--exit-code").stdout.splitlines() == [f"shop at {shop.work.head()[:12]}: 4 unchanged"]


def test_check_goes_on_after_a_failed_check(shop: Shop) -> None:
    shop.configure(repository=shop.host.url_of("missing"))
    found = {row["subject"]: row["verdict"] for row in shop.cli.json("check", code=1)["checks"] if row["target"]}
    assert found == {"git": "failed", "cluster": "ok", "rights": "ok", "plan": "skipped"}


def test_a_directory_is_applied_without_a_configuration(shop: Shop, kubectl: Kubectl) -> None:
    directory = shop.work.directory / "deploy"
    flags = ("apply", "-f", str(directory), "--name", "local", "-n", shop.namespace, "--state-namespace", shop.namespace)
    shop.cli.config.unlink()
    first = shop.cli.json(*flags)
    assert (first["commit"], first["counts"]) == (shop.work.head(), {"created": 4})
    shop.work.remove("deploy/three.yaml")
    changed = shop.cli(*flags)
    assert "differs from commit" in changed.stderr
    assert kubectl("get", "cm", "three", "-n", shop.namespace), "nothing is deleted without --prune"
    assert shop.cli.json(*flags, "--prune")["counts"] == {"unchanged": 3, "pruned": 1}
    assert shop.cli.json(*flags, "--prune")["counts"] == {"unchanged": 3}


def test_a_directory_is_validated_first_unless_that_is_left_out(shop: Shop, tmp_path: Path, kubectl: Kubectl) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "good.yaml").write_text(document("ConfigMap", "plain-good"))
    (tmp_path / "plain" / "bad.yaml").write_text(document("Service", "plain-bad", spec={"ports": [{"port": 99_999}]}))
    flags = ("apply", "-f", str(tmp_path / "plain"), "--name", "plain", "-n", shop.namespace, "--state-namespace", shop.namespace)

    def written() -> bool:
        return "plain-good" in [item["metadata"]["name"] for item in kubectl("get", "cm", "-n", shop.namespace)["items"]]

    for validate in ((), ("--validate", "server")):
        assert "99999" in shop.cli(*flags, *validate, code=1).stderr
        assert not written()
    assert "99999" in shop.cli(*flags, "--validate", "none", code=1).stderr
    assert written()
    assert "--validate goes with -f" in shop.cli("apply", "--validate", "none", code=64).stderr


def test_doctor_finds_this_machine_well(shop: Shop) -> None:
    found = {row["subject"]: row["verdict"] for row in shop.cli.json("doctor")["checks"]}
    assert found.keys() >= {"python", "packages", "sandbox", "walls", "configuration", "webhooks", "git", "clock", "rights", "plan"}
    elsewhere = ("server", "nix")  # which are not of every machine
    assert {verdict for subject, verdict in found.items() if subject not in elsewhere} == {"ok"}
