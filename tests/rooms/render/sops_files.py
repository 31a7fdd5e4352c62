"""Files as the real sops encrypts them, keys that a test makes, and renders by them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pyrage

from handler.config.decryption import Decryption
from handler.config.renderer_settings import RendererSettings
from handler.model.errors import DecryptionRefused
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.sops.decrypted_tree import DecryptedTree
from handler.render.sops.decryptor import Decryptor
from handler.render.target_render import render_target
from infra.renderers.build import binaries
from tests.fakes.source_tree import FakeTree
from tests.patience import PATIENCE

CANARY = "canary-hünter2-value"
SECRET = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\nstringData:\n  password: {CANARY}\n  user: ann\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {text: hello}\n"
VALUES = ("--encrypted-regex", "^(data|stringData)$")
"""What is encrypted of an object that kustomize builds with."""


@dataclass(frozen=True)
class AgeKey:
    """`secret` as a keys.txt has it."""

    secret: str = field(repr=False)
    recipient: str

    @classmethod
    def made(cls) -> Self:
        identity = pyrage.x25519.Identity.generate()
        return cls(str(identity), str(identity.to_public()))


ALICE, BOB = AgeKey.made(), AgeKey.made()


@dataclass
class HeldKeys:
    """`handler.render.sops.decryptor.DecryptionKeys` of a test. `asked`: KMS keys that were asked."""

    secrets: tuple[str, ...] = ()
    unwrap: Callable[[str, bytes, Mapping[str, str]], bytes] | None = None
    asked: list[str] = field(default_factory=list)

    def age(self) -> tuple[str, ...]:
        return self.secrets

    def kms(self, arn: str, wrapped: bytes, context: Mapping[str, str], place: str) -> bytes:
        self.asked.append(arn)
        if self.unwrap is None:
            raise DecryptionRefused.of(place, "no KMS here")
        return self.unwrap(arn, wrapped, context)


def sops(*arguments: str, given: str | bytes = "", key: str = "", environ: Mapping[str, str] | None = None) -> bytes:
    """Run the real sops."""
    environment = {"HOME": tempfile.gettempdir(), "PATH": os.environ["PATH"], "SOPS_AGE_KEY": key, **(environ or {})}
    data = given.encode() if isinstance(given, str) else given
    command = [str(binaries() / "sops"), "--disable-version-check", *arguments]
    done = subprocess.run(command, input=data, capture_output=True, env=environment, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


def encrypted(path: str, text: str | bytes, *flags: str, to: str = ALICE.recipient) -> bytes:
    verb = ("encrypt", "--filename-override", path, "--age", to)
    if set(flags) & {"--encrypted-comment-regex", "--mac-only-encrypted"}:  # sops knows these without a subcommand only
        return sops("--encrypt", *verb[1:], *flags, "/dev/stdin", given=text)
    return sops(*verb, *flags, given=text)


def bare(path: str, data: bytes, *flags: str, key: str = ALICE.secret) -> bytes:
    """Return what `sops decrypt` prints."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, path.rpartition("/")[2])
        file.write_bytes(data)
        return sops("decrypt", *flags, str(file), key=key)


def decryptor(keys: HeldKeys | None = None, *, kms: tuple[str, ...] = (), mac: str = "verify") -> Decryptor:
    settings = Decryption(kms=kms, mac="ignore" if mac == "ignore" else "verify")
    return Decryptor("shop", settings, HeldKeys((ALICE.secret,)) if keys is None else keys)


def plain(sandbox: Sandbox, path: str, data: bytes, by: Decryptor | None = None) -> bytes:
    """Return what renderers are given of a file."""
    tree = DecryptedTree(FakeTree({path: data}), by or decryptor(), sandbox, weak=True)
    (entry,) = tree.walk("")
    return tree.blobs([entry.oid])[entry.oid]


def render(
    sandbox: Sandbox,
    files: Mapping[str, str | bytes],
    by: Decryptor | None,
    renderer: str = "file",
    options: RendererSettings | None = None,
    request: RenderRequest | None = None,
) -> Rendered:
    request = request or RenderRequest("deploy", options=options or RendererSettings(), weak=True)
    return render_target(RENDERERS[renderer], FakeTree(files), request, sandbox, by)
