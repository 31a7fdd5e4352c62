"""`anneal promote`, and what `status` and `plan` say of a target that follows another: real git host, real control plane."""

from __future__ import annotations

from tests.e2e.cli.conftest import Shop, document


def two(shop: Shop, soak: str) -> None:
    """Configure a staging and a production target of one repository, in one namespace."""
    url, space = shop.host.url_of(shop.work.directory.name), shop.namespace
    common = f"repository: {{url: {url}}}, namespaces: [{space}], namespace: {space}"
    lines = [
        "apiVersion: anneal.dev/v1alpha1",
        "kind: Config",
        f"stateNamespace: {space}",
        "targets:",
        f"  - {{name: staging, path: staging, {common}}}",
        f"  - {{name: prod, path: prod, {common}, revision: {{promoted: {{from: staging, soak: {soak}}}}}}}",
    ]
    shop.cli.config.write_text("\n".join(lines) + "\n")


def push(shop: Shop, value: str) -> str:
    for name in ("staging", "prod"):
        shop.work.write(f"{name}/one.yaml", document("ConfigMap", f"one-{name}", data={"value": value}))
    return shop.push(f"Value {value}")


def test_by_hand_then_by_itself_and_what_is_said_in_between(shop: Shop) -> None:
    two(shop, "10h")
    first = push(shop, "1")
    looked = shop.cli("check", "prod").output
    assert "staging has no record yet" in looked
    assert "nothing yet: staging: has no record" in looked
    waits = shop.cli("apply", "prod", "-y", code=4)
    assert "staging: has no record: it never ran" in waits.output
    shop.cli("apply", "staging", "-y")
    assert f"staging has {first[:12]}" in shop.cli("check", "prod").output
    page = shop.cli("status", "prod").output
    assert f"staging: has kept {first[:12]} healthy for" in page
    assert "anneal" in page
    assert "promote prod" in page
    planned = shop.cli("promote", "prod", "--dry-run").output
    assert "one-prod" in planned
    done = shop.cli("promote", "prod", "-y").output
    assert "one-prod" in done
    assert "promotion by" in shop.cli("history", "prod").output
    second = push(shop, "2")
    shop.cli("apply", "staging", "-y")
    nothing = shop.cli("plan", "prod").output
    assert f"staging: has kept {second[:12]} healthy for" in nothing
    facts = shop.cli.json("status", "prod")
    assert facts["head"]["commit"] == first
    assert [each["target"] for each in facts["promotion"]] == ["staging"]
    table = shop.cli.json("status")["targets"]
    assert {row["target"]: bool(row.get("promotion")) for row in table} == {"staging": False, "prod": True}
    shop.cli("promote", "prod", "--commit", second[:12], "-y")
    assert shop.cli.json("status", "prod")["head"]["differs"] is False
    assert shop.cli.json("status", "prod")["state"]["commit"] == second
    two(shop, "1s")
    assert f"{first[:12]} is older than what it has recorded" in shop.cli("promote", "prod", "--commit", first, "-y", code=1).output


def test_what_follows_no_other_has_nothing_to_promote(shop: Shop) -> None:
    two(shop, "1h")
    push(shop, "1")
    refused = shop.cli("promote", "staging", "-y", code=1).output
    assert "follows refs/heads/main, and no other target" in refused
    assert "apply staging" in refused
