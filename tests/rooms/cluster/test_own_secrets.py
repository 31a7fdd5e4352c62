"""`kubernetesSecret` references, read from a real cluster with the least rights for it."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

import pytest
import yaml

from handler.app.external_services import ExternalServices
from handler.cluster.api import Api
from handler.config.git_settings import SecretRef, WebhookSecrets
from handler.config.remote_secrets import Fetch, SecretClocks
from handler.config.secret_rotation import Rotation
from handler.config.settings import Settings, WebhookSettings
from handler.model.errors import SecretUnavailable
from tests.patience import until

pytestmark = pytest.mark.usefixtures("waited_for")
OLD, NEW = "CANARY-old-secret-value", "CANARY-new-secret-value"


def ref(namespace: str, name: str = "hooks", key: str = "github") -> SecretRef:
    return SecretRef(kubernetes_secret=f"{namespace}/{name}/{key}")


def body(namespace: str, **values: bytes) -> dict[str, object]:
    data = {key: base64.b64encode(value).decode() for key, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hooks", "namespace": namespace}, "data": data}


def environ(kubeconfig: Path) -> dict[str, str]:
    return {"KUBECONFIG": str(kubeconfig)}


def readable(fetch: Fetch, wanted: SecretRef) -> bool:
    try:
        return fetch(wanted) is not None
    except SecretUnavailable:
        return False


def test_a_key_is_read_and_follows_the_secret(api: Api, control_plane: Path, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/secrets"
    api.post(path, body(namespace, github=f"{OLD}\n".encode(), binary=b"\xff"))
    settings = Settings((), webhooks=WebhookSettings(WebhookSecrets((ref(namespace),))))
    now = [0.0]
    rotation = Rotation(
        settings, {}, fetch=ExternalServices(environ(control_plane)).fetch, clocks=SecretClocks(lambda: now[0], lambda: now[0])
    )
    assert [each.secret.reveal() for each in rotation.webhook("github")] == [OLD]
    api.put(f"{path}/hooks", body(namespace, github=NEW.encode(), binary=b"\xff"))
    now[0] += settings.secrets_interval
    assert [each.secret.reveal() for each in rotation.webhook("github")] == [NEW]


def test_a_missing_secret_or_key_is_named(api: Api, control_plane: Path, namespace: str) -> None:
    api.post(f"/api/v1/namespaces/{namespace}/secrets", body(namespace, github=OLD.encode(), binary=b"\xffCANARY"))
    fetch = ExternalServices(environ(control_plane)).fetch
    for wanted, told in (
        (ref(namespace, "other"), f"Secret {namespace}/other/github: there is no such Secret; kubectl get secret -n {namespace}"),
        (ref(namespace, key="gitlab"), f"Secret {namespace}/hooks/gitlab: has no key gitlab; its keys are: binary, github"),
        (ref(namespace, key="binary"), f"Secret {namespace}/hooks/binary: is not UTF-8 text"),
    ):
        with pytest.raises(SecretUnavailable) as caught:
            fetch(wanted)
        assert str(caught.value) == told
        assert caught.value.__context__ is None
    with pytest.raises(SecretUnavailable, match=r"can't be read: .*no such file.*pass --kubeconfig"):
        ExternalServices(environ(Path("/nowhere/kubeconfig"))).fetch(ref(namespace))
    with pytest.raises(SecretUnavailable, match=r"this isn't a pod; set KUBECONFIG, or run the handler in a pod"):
        ExternalServices({}).fetch(ref(namespace))


def test_a_403_on_a_secret_prints_the_rbac_rule_that_suffices(api: Api, control_plane: Path, namespace: str, tmp_path: Path) -> None:
    api.post(f"/api/v1/namespaces/{namespace}/secrets", body(namespace, github=OLD.encode()))
    reader = f"reader-{secrets.token_hex(4)}"
    document = yaml.safe_load(control_plane.read_text())
    account = api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": reader}})
    assert account
    spec = {"spec": {"expirationSeconds": 600}}
    token = api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{reader}/token", spec)["status"]["token"]
    document["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(document))
    fetch = ExternalServices(environ(kubeconfig)).fetch
    with pytest.raises(SecretUnavailable) as caught:
        fetch(ref(namespace))
    (problem,) = caught.value.problems
    printed, _, rule = problem.fix.partition(": ")
    assert printed == f"add to a Role in {namespace}"
    group = "/apis/rbac.authorization.k8s.io/v1"
    api.post(f"{group}/namespaces/{namespace}/roles", {"metadata": {"name": reader}, "rules": [yaml.safe_load(rule)]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": reader}
    subject = {"kind": "ServiceAccount", "name": reader, "namespace": namespace}
    api.post(f"{group}/namespaces/{namespace}/rolebindings", {"metadata": {"name": reader}, "roleRef": role, "subjects": [subject]})
    until(lambda: readable(fetch, ref(namespace)))  # the authorizer sees a new binding a moment later
    assert fetch(ref(namespace)) == OLD
    with pytest.raises(SecretUnavailable, match="add to a Role"):
        fetch(ref(namespace, "other"))
    with pytest.raises(SecretUnavailable, match=r"can't be read: 403.*add to a Role in kube-system: ") as caught:
        fetch(ref("kube-system"))
    assert "CANARY" not in str(caught.value)
