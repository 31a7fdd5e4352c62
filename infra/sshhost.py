"""A real git host by SSH on loopback: Debian's sshd and `git shell`, as ordinary processes of an unprivileged user.

sshd comes from its package, which is unpacked and not installed: no service, no user of this machine. It sees a passwd file of its own
(nss_wrapper) in which `git` is the only one to sign in. Each connection has its own sshd (`sshd -i`), so the port is free and the
switches may be turned at any time. Used by tests; the handler never runs ssh.

    with SshHost() as host:
        host.accept(public_key)
        work = Work.of(host, "shop")
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from infra.debian import unpacked
from infra.gitwork import init_repository

PACKAGES = ("openssh-server", "libnss-wrapper")
UNPRIVILEGED = 64123  # an id that no system gives away (Debian policy 9.2.2: 60000-64999 is handed out by hand)


class SshHost:
    """A git host. `protocol_v2`: take GIT_PROTOCOL. `serve`: shell text that runs what was asked for. `host_keys`: files."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="sshhost-"))
        self.root.chmod(0o755)
        self._home = self.root / "home"
        self._home.mkdir()
        self.protocol_v2 = True
        self.serve = 'exec git shell -c "$SSH_ORIGINAL_COMMAND"'
        self.host_keys: Sequence[Path] = (self.new_key("host"),)
        self.options: dict[str, str] = {}
        self.connections = 0
        self._identity = (UNPRIVILEGED, UNPRIVILEGED) if os.getuid() == 0 else (os.getuid(), os.getgid())
        self._running: list[subprocess.Popen[bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, daemon=True)
        (self._home / "authorized_keys").touch()
        user, group = self._identity
        (self._home / "passwd").write_text(f"git:x:{user}:{group}:git:{self._home}:/bin/sh\nsshd:x:64124:64124::/:/bin/false\n")
        (self._home / "group").write_text(f"git:x:{group}:\n")

    def __enter__(self) -> SshHost:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for process in self._running:
            process.terminate()
            process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    def url_of(self, name: str) -> str:
        """Return the URL of a repository."""
        return f"ssh://git@127.0.0.1:{self.port}{self.root}/{name}.git"

    def create(self, name: str) -> Path:
        """Make a bare repository."""
        bare = self.root / f"{name}.git"
        init_repository(bare, "main", "", bare=True)
        return bare

    def new_key(self, name: str, kind: str = "ed25519", passphrase: str = "", pem: str = "") -> Path:
        """Make a key pair and return the private half's file."""
        file = self._home / name
        bits = ["-b", "2048"] if kind == "rsa" else []
        form = ["-m", pem] if pem else []
        subprocess.run(["ssh-keygen", "-q", "-t", kind, *bits, *form, "-N", passphrase, "-C", name, "-f", str(file)], check=True)
        return file

    def accept(self, key: Path) -> None:
        """Let the owner of a private key in."""
        with (self._home / "authorized_keys").open("a") as file:
            file.write(key.with_name(f"{key.name}.pub").read_text())

    def known_hosts(self, *keys: Path, name: str = "") -> str:
        """Return known_hosts lines of these keys (default: the host's own), under its own name and port or another."""
        shown = name or f"[127.0.0.1]:{self.port}"
        return "".join(f"{shown} {key.with_name(f'{key.name}.pub').read_text()}" for key in keys or self.host_keys)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection, suppress(subprocess.SubprocessError):
                self._running.append(self._sshd(connection))

    def _sshd(self, connection: socket.socket) -> subprocess.Popen[bytes]:
        """Start the sshd of one connection."""
        programs = unpacked("sshd", PACKAGES)
        user, group = self._identity
        libraries = [str(path) for path in (*programs.glob("usr/lib/*-linux-*"), *programs.glob("lib/*-linux-*"))]
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LD_LIBRARY_PATH": ":".join(libraries),
            "LD_PRELOAD": "libnss_wrapper.so",
            "NSS_WRAPPER_PASSWD": str(self._home / "passwd"),
            "NSS_WRAPPER_GROUP": str(self._home / "group"),
        }
        root = os.getuid() == 0  # only root may choose the user of sshd
        return subprocess.Popen(
            [str(programs / "usr/sbin/sshd"), "-i", "-e", "-f", str(self._configuration(programs))],
            stdin=connection.fileno(),
            stdout=connection.fileno(),
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
            user=user if root else None,
            group=group if root else None,
            extra_groups=() if root else None,
        )

    def _configuration(self, programs: Path) -> Path:
        """Write what the switches say as an sshd_config(5)."""
        script = self._home / "serve"
        path = os.environ.get("PATH", os.defpath)
        trust = "export GIT_CONFIG_COUNT=3 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'"
        offers = "GIT_CONFIG_KEY_1=uploadpack.allowFilter GIT_CONFIG_VALUE_1=true"
        any_sha = "GIT_CONFIG_KEY_2=uploadpack.allowAnySHA1InWant GIT_CONFIG_VALUE_2=true"
        _write(script, f"PATH='{path}'\nexport PATH\n{trust}\nexport {offers} {any_sha}\n{self.serve}\n")
        settings = {
            "AuthorizedKeysFile": self._home / "authorized_keys",
            "UsePAM": "no",
            "StrictModes": "no",
            "PidFile": "none",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "ForceCommand": f"/bin/sh {script}",
            **({"AcceptEnv": "GIT_PROTOCOL"} if self.protocol_v2 else {}),
            **({"SshdSessionPath": session} if (session := programs / "usr/lib/openssh/sshd-session").exists() else {}),
            **({"SshdAuthPath": auth} if (auth := programs / "usr/lib/openssh/sshd-auth").exists() else {}),
            **self.options,
        }
        file = self._home / "sshd_config"
        lines = [f"{key} {value}" for key, value in settings.items()] + [f"HostKey {key}" for key in self.host_keys]
        _write(file, "\n".join(lines) + "\n")
        for each in self._home.iterdir():
            shutil.chown(each, *self._identity)  # sshd wants its keys to belong to it
        return file


def _write(file: Path, text: str) -> None:
    """Replace a file at once: an sshd of another connection may be reading it."""
    if not file.exists() or file.read_text() != text:
        new = file.with_name(f"{file.name}.new")
        new.write_text(text)
        new.replace(file)
