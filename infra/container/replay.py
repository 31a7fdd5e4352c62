"""`python -m infra.container.replay`: builds the image without an engine, runs it, and says what it weighs.

What it shows is what tests/rooms/container assert; what it can't show is printed at its end.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

from infra.container import building
from infra.container.building import Image
from infra.container.running import Container
from infra.container.tools import ContainerError, missing

CONFIGURATION = """
apiVersion: anneal.dev/v1alpha1
kind: Config
webhooks: {github: {secrets: [{env: HOOK}]}}
targets:
  - name: shop
    repository: {url: "http://127.0.0.1:9/acme/shop.git", aliases: ["https://git.example.com/acme/shop.git"]}
    namespaces: [shop]
    cluster: {kubeconfig: {file: missing}}
"""
HOOK = "a secret long enough to start"
ROLES = (("handler.render.child", "render server"), ("handler.web", "web"), ("anneal serve", "worker"))
"""What a command line holds, and what that process is; process 1 is the supervisor."""
NOT_SHOWN = """
Not shown here: the base images themselves (Debian's own Python 3.11 and this machine's Go stand in), their digests, a push to a registry,
another architecture, an engine's default seccomp profile, a kubelet."""


def configure(place: Path) -> None:
    """Write the directory that is mounted at /etc/anneal: a target without a kubeconfig, so that each run ends at once and says so."""
    (place / "anneal.yaml").write_text(CONFIGURATION)
    place.chmod(0o755)  # tempfile gives it 0700, and the image's user isn't root


def memory(container: Container) -> dict[str, tuple[int, int]]:
    """Return each process's resident and own (proportional) memory in bytes."""
    found = {}
    first = container.pid
    for pid in container.pids():
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        role = "supervisor" if pid == first else next((role for part, role in ROLES if part in command), command)
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        role = "gunicorn's arbiter" if role == "web" and parent == str(first) else role
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        found[role] = _kilobytes(rollup, "Rss"), _kilobytes(rollup, "Pss")
    return found


def _kilobytes(rollup: str, name: str) -> int:
    return 1024 * int(re.findall(rf"^{name}:\s+(\d+) kB", rollup, re.MULTILINE)[0])


def _told(container: Container) -> None:
    print("\nmemory of an idle handler with one target (resident; its share of what several use):")
    rows = memory(container)
    for role, (resident, own) in rows.items():
        print(f"  {role:20} {resident / 1e6:6.1f} MB  {own / 1e6:6.1f} MB")
    print(f"  {'together':20} {'':9}  {sum(own for _, own in rows.values()) / 1e6:6.1f} MB")


def _weighed(image: Image) -> None:
    whole, ours = image.bytes("."), image.bytes("opt/anneal")
    print(f"\nunpacked: {ours / 1e6:.0f} MB of our own on {(whole - ours) / 1e6:.0f} MB of the base image's stand-in; the largest parts:")
    (packages,) = (image.root / "opt/anneal/lib").glob("python*/site-packages")
    sizes = {each.name: image.bytes(str(each.relative_to(image.root))) for each in packages.iterdir()}
    sizes["kustomize, helm and sops"] = image.bytes("opt/anneal/tools")
    for name in sorted(sizes, key=lambda each: -sizes[each])[:6]:
        print(f"  {name:20} {sizes[name] / 1e6:6.1f} MB")


def main() -> int:
    """Build, run, print; return the exit status."""
    if reason := missing():
        sys.stderr.write(f"{reason}\n")
        return 1
    started = time.monotonic()
    try:
        image = building.built("container")
        print(f"built from {building.HERE}/Dockerfile, or found unchanged, in {time.monotonic() - started:.1f} s")
        with tempfile.TemporaryDirectory() as work:
            configure(Path(work))
            started = time.monotonic()
            with Container(image, Path(work), {"HOOK": HOOK}) as container:
                container.wait(lambda: container.request("GET", "/readyz")[0] == 200)
                print(f"ready {time.monotonic() - started:.1f} s after its start, as user {Path(f'/proc/{container.pid}').stat().st_uid}")
                check = container.run(*image.config["Healthcheck"]["Test"][1:])
                print(f"health check: {'healthy' if check.returncode == 0 else check.stderr.strip()}")
                _told(container)
                started = time.monotonic()
                print(f"\nSIGTERM: ended with {container.stop()} after {time.monotonic() - started:.1f} s")
        _weighed(image)
    except ContainerError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(NOT_SHOWN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
