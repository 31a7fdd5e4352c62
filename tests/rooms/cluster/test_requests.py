"""Retries, deadlines, identities and clocks, through a wire that misbehaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3
import yaml

from handler.cluster.access_review import AccessRule, allowed
from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.cluster.live import members
from handler.cluster.own_objects import OwnObjects
from handler.cluster.write import Writer
from handler.config.settings import Cluster
from handler.model.errors import AccessDenied, ClusterUnavailable, KubeconfigInvalid, LeaseLost, Moved, StateInvalid
from handler.model.names import Identity, identity_of
from tests.patience import until
from tests.rooms.cluster.conftest import Apply, Kind, config_map
from tests.rooms.cluster.faulty_proxy import Trick, Wire, half, refuse, reset_after, reset_before


@pytest.mark.parametrize("trick", [refuse(429, "0"), refuse(503), refuse(500), reset_before, reset_after, half])
def test_a_get_is_retried_after_transient_faults(trick: Trick, wire: Wire, through: Callable[..., Api]) -> None:
    wire.tricks = [trick, trick]
    found = through().get("/api/v1/namespaces/kube-system")
    assert found
    assert found["metadata"]["name"] == "kube-system"
    assert len(wire.seen) == 3


@pytest.mark.parametrize("trick", [refuse(429, "0"), refuse(503), reset_before, reset_after, half])
def test_an_apply_is_retried_after_transient_faults_and_applied_once(
    trick: Trick, wire: Wire, through: Callable[..., Api], kind: Kind, namespace: str
) -> None:
    wire.tricks = [trick]
    fenced = [0]

    def fence() -> None:
        fenced[0] += 1

    live = Writer(through(), fence).apply(kind("v1", "ConfigMap"), config_map(namespace, "a"))
    assert live["metadata"]["name"] == "a"
    assert fenced[0] == len(wire.seen) == 2


def test_an_update_whose_answer_was_lost_has_moved(
    wire: Wire, through: Callable[..., Api], apply: Apply, kind: Kind, namespace: str
) -> None:
    live = apply(config_map(namespace, "a"))["metadata"]
    wire.tricks = [reset_after]
    with pytest.raises(Moved):
        Writer(through(), lambda: None).apply(
            kind("v1", "ConfigMap"), config_map(namespace, "a", {"a": "2"}), live["uid"], live["resourceVersion"]
        )


def test_a_delete_whose_answer_was_lost_is_done(wire: Wire, through: Callable[..., Api], apply: Apply, kind: Kind, namespace: str) -> None:
    live = apply(config_map(namespace, "a"))
    wire.tricks = [reset_after]
    assert Writer(through(), lambda: None).delete(kind("v1", "ConfigMap"), identity_of(live), live["metadata"]["uid"]) is False


def test_a_lease_lost_between_attempts_ends_them(wire: Wire, through: Callable[..., Api], kind: Kind, namespace: str) -> None:
    wire.tricks = [refuse(503)] * 10
    left = [1]

    def fence() -> None:
        if not left[0]:
            raise LeaseLost.of("Lease", "taken")
        left[0] -= 1

    with pytest.raises(LeaseLost):
        Writer(through(), fence).apply(kind("v1", "ConfigMap"), config_map(namespace, "a"))
    assert len(wire.seen) == 1


def test_a_create_with_unknown_outcome_isnt_repeated(wire: Wire, through: Callable[..., Api], api: Api, namespace: str) -> None:
    wire.tricks = [reset_after]
    with pytest.raises(ClusterUnavailable):
        OwnObjects(through()).create(config_map(namespace, "a"))
    assert len(wire.seen) == 1
    assert OwnObjects(api).get("ConfigMap", namespace, "a")


def test_a_create_refused_with_429_is_repeated(wire: Wire, through: Callable[..., Api], namespace: str) -> None:
    wire.tricks = [refuse(429, "0")]
    assert OwnObjects(through()).create(config_map(namespace, "a"))["metadata"]["uid"]


def test_the_deadline_ends_the_attempts(wire: Wire, through: Callable[..., Api], monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only pauses move: 0.1 s, doubling up to 10 s, half of each by chance."""
    wire.tricks = [refuse(503)] * 100
    now, reading = [0.0], through(deadline=30.0)

    def pause(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("handler.cluster.api.time", SimpleNamespace(monotonic=lambda: now[0], sleep=pause))
    with pytest.raises(ClusterUnavailable, match="503"):
        reading.get("/api/v1/namespaces/kube-system")
    assert 9 <= len(wire.seen) <= 12
    assert 20 < now[0] <= 30


def test_a_retry_after_beyond_the_deadline_isnt_waited_for(wire: Wire, through: Callable[..., Api]) -> None:
    wire.tricks = [refuse(429, "3600")]
    with pytest.raises(ClusterUnavailable):
        through(deadline=5).get("/api/v1/namespaces/kube-system")
    assert len(wire.seen) == 1


def test_401_loads_the_credentials_once_more(wire: Wire, through: Callable[..., Api]) -> None:
    wire.tricks = [refuse(401)]
    assert through().get("/api/v1/namespaces/kube-system")
    wire.tricks = [refuse(401)] * 5
    with pytest.raises(AccessDenied, match="renew"):
        through().get("/api/v1/namespaces/kube-system")
    assert len(wire.tricks) == 3


def test_without_any_credentials_that_is_what_is_said_and_no_right_for_everybody_is_advised(kubeconfig: Path, tmp_path: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": user["name"], "user": {}} for user in config["users"]]
    (tmp_path / "nobody").write_text(yaml.safe_dump(config))
    with pytest.raises(
        AccessDenied, match=r"403 for GET; credentials: none are configured; .*: kubectl --kubeconfig .*/nobody config set-"
    ) as told:
        Api(connect(Cluster(), kubeconfig=str(tmp_path / "nobody"), environ={})).get("/api/v1/namespaces/kube-system")
    assert "system:anonymous" not in str(told.value)


def test_with_a_short_unmet_limit_refused_connections_are_believed_soon(
    wire: Wire, through: Callable[..., Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, reading = [0.0], through(deadline=30.0, unmet=1.0)

    def pause(seconds: float) -> None:
        now[0] += seconds

    def refuses(*_: object, **__: object) -> None:
        raise urllib3.exceptions.NewConnectionError(None, "refused")  # type: ignore[arg-type]  # nothing asks for the pool

    monkeypatch.setattr("handler.cluster.api.time", SimpleNamespace(monotonic=lambda: now[0], sleep=pause))
    monkeypatch.setattr(reading.connection, "pool", lambda _: SimpleNamespace(request=refuses))
    with pytest.raises(ClusterUnavailable):
        reading.get("/api/v1/namespaces/kube-system")
    assert 0 < now[0] <= 1


def test_a_server_of_another_authority_is_refused_at_once(kubeconfig: Path, tmp_path: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    for row in config["clusters"]:
        row["cluster"] = {"server": row["cluster"]["server"]}
    untrusting = tmp_path / "untrusting"
    untrusting.write_text(yaml.safe_dump(config))
    api = Api(connect(Cluster(), kubeconfig=str(untrusting), environ={}))
    with pytest.raises(KubeconfigInvalid, match=r"isn't trusted \(.*\); put its authority into the kubeconfig"):
        api.get("/version")
    assert api.requests == 2


def test_a_refused_connection_is_cluster_unavailable(through: Callable[..., Api], wire: Wire) -> None:
    api = through(deadline=0.2)
    wire.close()
    with pytest.raises(ClusterUnavailable, match="got no answer from http"):
        api.get("/version")


def test_every_attempt_is_counted(wire: Wire, through: Callable[..., Api]) -> None:
    wire.tricks = [refuse(503), refuse(503)]
    api = through()
    api.get("/version")
    assert api.requests == 3


def test_the_servers_clock_goes_on_between_answers(api: Api) -> None:
    before = time.time()
    assert before - 1.1 <= api.server_time() <= time.time() + 0.1
    asked = api.requests
    first = api.server_time()
    until(lambda: api.server_time() > first)
    assert api.requests == asked == 1


def account(apply: Apply, namespace: str, verbs: list[str]) -> str:
    """A ServiceAccount that may do this with the ConfigMaps of one namespace."""
    apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": namespace}})
    grant(apply, namespace, "works", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}])
    return f"{namespace}/deployer"


def grant(apply: Apply, namespace: str, name: str, rules: list[dict[str, Any]]) -> None:
    """A Role bound to the ServiceAccounts' group, which an impersonated one must carry too."""
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": namespace}}
    apply(role | {"rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": f"system:serviceaccounts:{namespace}"}
    apply(role | {"kind": "RoleBinding", "roleRef": reference, "subjects": [group]})


def _sees_nothing(api: Api, path: str) -> bool:
    try:
        return api.get(path) is None
    except AccessDenied:
        return False


def test_an_impersonated_target_sees_its_namespaces_and_no_more(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    weak = Api(api.connection, impersonate=account(apply, namespace, ["get", "list", "patch", "create"]))
    until(lambda: allowed(weak, [AccessRule("list", "", "configmaps", namespace)]) == [True])
    apply(config_map(namespace, "a", labels={"a": "b"}))
    resource = kind("v1", "ConfigMap")
    assert [item["metadata"]["name"] for item in members(weak, [resource], "a=b", (namespace,))] == ["a"]
    with pytest.raises(AccessDenied, match=r'ClusterRole: \{apiGroups: \[""\], resources: \[configmaps\], verbs: \[list\]\}'):
        list(members(weak, [resource], "a=b", None))
    with pytest.raises(AccessDenied, match=f"Role in {namespace}: .*verbs: \\[delete\\]"):
        Writer(weak, lambda: None).delete(resource, Identity("", "ConfigMap", namespace, "a"), "some-uid")


def test_rights_are_asked_by_self_subject_access_review(api: Api, apply: Apply, namespace: str) -> None:
    weak = Api(api.connection, impersonate=account(apply, namespace, ["get"]))
    rules = [
        AccessRule("get", "", "configmaps", namespace),
        AccessRule("delete", "", "configmaps", namespace),
        AccessRule("get", "", "configmaps"),
        AccessRule("get", "", "configmaps", namespace, "a"),
    ]
    until(lambda: allowed(weak, rules) == [True, False, False, True])
    assert allowed(api, rules) == [True] * 4
    assert str(rules[1]) == f'add to its Role in {namespace}: {{apiGroups: [""], resources: [configmaps], verbs: [delete]}}'


def test_who_may_not_impersonate_is_told_the_rule(api: Api, apply: Apply, namespace: str, kubeconfig: Path, tmp_path: Path) -> None:
    subject = account(apply, namespace, ["get"])
    token = api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/deployer/token", {"spec": {"expirationSeconds": 600}})
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"] = [{"name": row["name"], "user": {"token": token["status"]["token"]}} for row in config["users"]]
    weak = tmp_path / "weak"
    weak.write_text(yaml.safe_dump(config))
    connection = connect(Cluster(), kubeconfig=str(weak), environ={})
    path = f"/api/v1/namespaces/{namespace}/configmaps/absent"
    until(lambda: allowed(Api(connection), [AccessRule("get", "", "configmaps", namespace)]) == [True])
    assert Api(connection).get(path) is None
    with pytest.raises(AccessDenied, match=r'resources: \["serviceaccounts"\], verbs: \["impersonate"\]'):
        Api(connection, impersonate=subject).get(path)
    grant(apply, namespace, "impersonates", [{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}])
    until(lambda: _sees_nothing(Api(connection, impersonate=subject), path))


def test_state_objects_are_swapped_never_overwritten(api: Api, namespace: str) -> None:
    objects = OwnObjects(api)
    assert objects.get("ConfigMap", namespace, "state") is None
    first = objects.create(config_map(namespace, "state"))
    second = objects.replace(first | {"data": {"a": "2"}})
    with pytest.raises(Moved):
        objects.replace(first | {"data": {"a": "3"}})
    with pytest.raises(Moved):
        objects.create(config_map(namespace, "state"))
    with pytest.raises(StateInvalid):
        objects.replace(config_map(namespace, "state"))
    assert [
        item["metadata"]["name"] for item in objects.overview("ConfigMap", namespace) if item["metadata"]["name"] != "kube-root-ca.crt"
    ] == ["state"]
    with pytest.raises(Moved):
        objects.delete(
            "ConfigMap", namespace, "state", uid=second["metadata"]["uid"], resource_version=first["metadata"]["resourceVersion"]
        )
    assert objects.delete("ConfigMap", namespace, "state", uid=second["metadata"]["uid"])
    assert not objects.delete("ConfigMap", namespace, "state", uid=second["metadata"]["uid"])


def test_a_lease_is_kept_beside_it(api: Api, namespace: str) -> None:
    objects = OwnObjects(api)
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": namespace}}
    live = objects.create(body | {"spec": {"holderIdentity": "one"}})
    assert objects.replace(live | {"spec": {"holderIdentity": "two"}})["spec"] == {"holderIdentity": "two"}


def test_the_cluster_uid_is_that_of_kube_system(api: Api) -> None:
    assert len(OwnObjects(api).cluster_uid()) == 36
