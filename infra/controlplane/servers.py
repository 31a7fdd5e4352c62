"""How each server is started, and the files they share. No process is started here. Standard library only."""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

from infra.controlplane import pod_failures

LOOPBACK = "127.0.0.1"
CONTEXT = "anneal"
PORTS = ("etcd", "peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


@dataclass(frozen=True)
class Layout:
    """The files of one instance."""

    root: Path

    @property
    def lock(self) -> Path:
        """Held while the instance is started or stopped; also the mark that the directory is ours."""
        return self.root / "controlplane.lock"

    @property
    def processes(self) -> Path:
        """What was started."""
        return self.root / "processes.json"

    @property
    def kubeconfig(self) -> Path:
        """For clients: verified TLS, a random token, a context named `anneal`."""
        return self.root / "kubeconfig"

    @property
    def data(self) -> Path:
        """Everything that is made anew at each start."""
        return self.root / "data"

    @property
    def certificate(self) -> Path:
        """The server's certificate and its authority; the API server signs it itself at its first start."""
        return self.data / "certs" / "apiserver.crt"

    @property
    def audit(self) -> Path:
        """What the API server itself noted of the requests for Deployments: a JSON object a line."""
        return self.root / "logs" / "audit.jsonl"

    def log(self, name: str) -> Path:
        """Return a server's log."""
        return self.root / "logs" / f"{name}.log"


def free_ports() -> dict[str, int]:
    """Return a free loopback port for each use. Another program may take one before we do: the caller tries again."""
    sockets = {name: socket.socket() for name in PORTS}
    try:
        for each in sockets.values():
            each.bind((LOOPBACK, 0))
        return {name: each.getsockname()[1] for name, each in sockets.items()}
    finally:
        for each in sockets.values():
            each.close()


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, from its first moment on."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as handle:
        handle.write(text)


def write_credentials(layout: Layout) -> str:
    """Write the token file and the key that signs service account tokens; return the administrator's token."""
    token = secrets.token_urlsafe(32)
    write_private(layout.data / "tokens.csv", f'{token},anneal-admin,anneal-admin,"system:masters"\n')
    write_private(layout.data / "serviceaccount.key", signing_key())
    return token


def signing_key() -> str:
    """Return a new ECDSA P-256 key in PEM: RFC 5915's ECPrivateKey without the public key, which readers compute themselves."""
    scalar = bytes([secrets.randbelow(0x7F) + 1]) + secrets.token_bytes(31)  # below the group's order, above zero
    version, curve = bytes.fromhex("020101"), bytes.fromhex("a00a06082a8648ce3d030107")
    content = version + b"\x04\x20" + scalar + curve
    encoded = base64.encodebytes(b"\x30" + bytes([len(content)]) + content).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{encoded}-----END EC PRIVATE KEY-----\n"


def kubeconfig(port: int, certificate: bytes, token: str) -> str:
    """Return a kubeconfig that trusts exactly this server."""
    return f"""\
apiVersion: v1
kind: Config
current-context: {CONTEXT}
contexts:
- name: {CONTEXT}
  context: {{cluster: {CONTEXT}, user: {CONTEXT}}}
clusters:
- name: {CONTEXT}
  cluster:
    server: https://{LOOPBACK}:{port}
    certificate-authority-data: {base64.b64encode(certificate).decode()}
users:
- name: {CONTEXT}
  user: {{token: {token}}}
"""


def etcd(layout: Layout, ports: dict[str, int]) -> list[str]:
    """Return etcd's arguments: fast rather than durable, every start is from nothing."""
    client, peer = f"http://{LOOPBACK}:{ports['etcd']}", f"http://{LOOPBACK}:{ports['peer']}"
    return [
        f"--data-dir={layout.data / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=2147483648",
        "--log-level=warn",
    ]


def kube_apiserver(layout: Layout, ports: dict[str, int]) -> list[str]:
    """Return the API server's arguments; admission plugins, priority and fairness stay as they are by default."""
    key = layout.data / "serviceaccount.key"
    return [
        f"--etcd-servers=http://{LOOPBACK}:{ports['etcd']}",
        f"--cert-dir={layout.certificate.parent}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        "--endpoint-reconciler-type=none",  # a loopback address may not stand in Endpoints
        f"--secure-port={ports['kube-apiserver']}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--token-auth-file={layout.data / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--allow-privileged=true",
        "--default-watch-cache-size=50",
        f"--audit-policy-file={_audit_policy(layout)}",
        f"--audit-log-path={layout.audit}",
        "--audit-log-maxsize=20",
        "--audit-log-maxbackup=1",
        "--kubelet-preferred-address-types=InternalIP",  # the Node's name isn't in any DNS
        "--event-ttl=15m",
        "--profiling=false",
    ]


def _audit_policy(layout: Layout) -> Path:
    """Write what the API server notes, and return it: few requests, so that nothing measured on it becomes slower."""
    deployments = [{"group": "apps", "resources": ["deployments"]}]
    rules = [{"level": "Metadata", "verbs": ["get", "list", "watch", "patch"], "resources": deployments}, {"level": "None"}]
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}
    path = layout.data / "audit-policy.json"
    path.write_text(json.dumps(policy))
    return path


def kube_controller_manager(layout: Layout, ports: dict[str, int]) -> list[str]:
    """Return the controller-manager's arguments; a busy machine may delay heartbeats for minutes without evicting pods."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        f"--service-account-private-key-file={layout.data / 'serviceaccount.key'}",
        f"--root-ca-file={layout.certificate}",
        "--use-service-account-credentials=false",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports['kube-controller-manager']}",
        f"--cert-dir={layout.data / 'certs-controller-manager'}",
        "--node-monitor-grace-period=10m",
        "--concurrent-namespace-syncs=20",
        "--concurrent-gc-syncs=20",
        "--kube-api-qps=300",
        "--kube-api-burst=600",
        "--profiling=false",
    ]


def kube_scheduler(layout: Layout, ports: dict[str, int]) -> list[str]:
    """Return the scheduler's arguments."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={ports['kube-scheduler']}",
        f"--cert-dir={layout.data / 'certs-scheduler'}",
        "--profiling=false",
    ]


def kwok(layout: Layout, ports: dict[str, int], stages: Path) -> list[str]:
    """Return the arguments of the fake kubelet that makes pods run."""
    return [
        f"--kubeconfig={layout.kubeconfig}",
        "--manage-all-nodes=true",
        f"--config={stages}",
        f"--config={pod_failures.write(layout.data)}",
        f"--server-address={LOOPBACK}:{ports['kwok']}",
        f"--tls-cert-file={layout.certificate}",
        f"--tls-private-key-file={layout.certificate.with_suffix('.key')}",
        f"--node-ip={LOOPBACK}",
        f"--node-port={ports['kwok']}",  # where the API server asks for the logs of containers
        "--node-lease-duration-seconds=120",  # its other heartbeat comes up to ten minutes too late for the grace period above
    ]
