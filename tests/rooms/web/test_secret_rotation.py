"""Secrets rotated under a running door: no restart, no delivery lost."""

from __future__ import annotations

import os
from pathlib import Path

from tests.fakes.signed_webhooks import github_headers, github_push
from tests.rooms.web.conftest import CONFIG, Serving, served

OLD, NEW = "the-old-webhook-secret-01", "the-new-webhook-secret-02"


def mounted(directory: Path, version: str, **values: str) -> None:
    """Write secrets as the kubelet does: into a directory of their own, then swap the link to it."""
    (directory / version).mkdir(parents=True)
    for name, value in values.items():
        (directory / version / name).write_text(value)
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    (directory / "..next").symlink_to(version)
    (directory / "..next").rename(directory / "..data")


def push(server: Serving, secret: str) -> int:
    body = github_push()
    return server.request("POST", "/webhooks/github", body, github_headers(body, secret=secret))[0]


def replay(server: Serving, token: str) -> int:
    return server.request("POST", "/replay/shop-prod", b"", {"Authorization": f"Bearer {token}"})[0]


def test_a_rotated_webhook_secret_counts_without_a_restart(tmp_path: Path) -> None:
    mount = tmp_path / "secrets"
    mounted(mount, "v1", hook=OLD, token=f"{OLD}-token")
    text = CONFIG.replace("{env: GITHUB}", f"{{file: {mount}/hook}}").replace("{env: OPS}", f"{{file: {mount}/token}}")
    with served(tmp_path, text) as server:
        before = server.web()
        assert (push(server, OLD), push(server, NEW), replay(server, f"{OLD}-token")) == (202, 401, 202)
        mounted(mount, "v2", hook=NEW, token=f"{NEW}-token")
        server.wait(lambda: push(server, NEW) == 202)
        server.wait(lambda: replay(server, f"{NEW}-token") == 202)  # read just before the mount changed, it counts a second later
        assert (push(server, OLD), replay(server, f"{OLD}-token"), replay(server, f"{NEW}-token")) == (401, 401, 202)
        (mount / "v2" / "hook").unlink()  # a broken mount: what counted last still does
        os.utime(mount / "v2")
        server.wait(lambda: push(server, NEW) == 202 and any("can't be renewed" in line["message"] for line in server.lines()))
        assert server.web() == before
    log = server.log.read_text()
    assert OLD not in log
    assert NEW not in log
    assert log.count("can't be renewed") == 1
