"""A real Gitea on loopback: git over HTTP, webhooks, commit statuses, pull requests and their comments. Used by tests.

It is built once out of its module; it is an ordinary process, ended by its own id. What may be asked of it stands in infra/gitea/forge.py.

    with GiteaHost() as host:
        ada = host.user("ada")
        shop = host.repository("ada", "shop")
        work = host.work(shop, ada)
        work.write("deploy/app.yaml", "kind: ConfigMap").commit("First")
        work.push()
        host.webhook(shop, "http://127.0.0.1:8080/webhooks/gitea", "a-secret-0123456789")
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import urllib3

from infra import ports
from infra.gitea.build import gitea
from infra.gitea.forge import Account, Answer, Forge, Refused
from infra.gitea.settings import app_ini
from infra.gitwork import Work
from infra.patience import PATIENCE

__all__ = ["Account", "Answer", "GiteaHost", "Refused"]

ADMIN = "root"


class GiteaHost(Forge):
    """A Gitea. `url`: where it answers; after `stop` it may be started again at the same place, with all that it had.

    `address`: what it calls itself in what it sends, by default that URL.
    """

    def __init__(self, address: str = "") -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="gitea-host-"))
        self._port = ports.keep()
        self.url = f"http://127.0.0.1:{self._port.getsockname()[1]}"
        self.admin = Account(ADMIN, "", "")
        self._address = address or self.url
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> GiteaHost:
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._pool.clear()
        self._port.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def start(self) -> GiteaHost:
        """Start it, and wait until it answers. Its life is bound to the thread that calls. Raises RuntimeError, with its last words."""
        built = gitea()
        settings = self.root / "app.ini"
        if not settings.exists():
            settings.write_text(app_ini(self.root, built.static, self._port.getsockname()[1], self._address))
        bound = ["setpriv", "--pdeathsig", "KILL"]  # a killed test leaves none behind
        with (self.root / "said").open("wb") as said:
            command = [*bound, *self._command("web")]
            self._process = subprocess.Popen(command, cwd=self.root, env=self._environment(), stdout=said, stderr=said)
        self._wait()
        if not self.admin.token:
            self.admin = self._administrator()
        return self

    def stop(self) -> None:
        """End it; its data stays for the next start."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()

    def said(self) -> str:
        """Return its log."""
        return "".join(file.read_text(errors="replace") for file in (self.root / "said", *self.root.glob("log/*.log")) if file.is_file())

    def work(self, repository: str, account: Account, directory: Path | None = None) -> Work:
        """Return a new working clone, which pushes as this person; what the repository has is fetched, and its main is at hand."""
        directory = directory or self.root / "work" / account.name / repository
        work = Work(directory, self.clone_url(repository, account)).init()
        work.git("fetch", "-q", "origin")
        if work.git("for-each-ref", f"refs/remotes/origin/{work.branch}"):
            work.git("reset", "-q", "--hard", f"origin/{work.branch}")
        return work

    def _command(self, *arguments: str) -> list[str]:
        return [str(gitea().program), *arguments, "--config", str(self.root / "app.ini")]

    def _environment(self) -> dict[str, str]:
        """Return an environment in which neither git nor Gitea reads settings of this machine."""
        names = {"HOME": str(self.root), "TMPDIR": str(self.root), "USER": getpass.getuser(), "GIT_CONFIG_NOSYSTEM": "1"}
        return {"PATH": os.environ.get("PATH", os.defpath), **names}

    def _wait(self) -> None:
        end = time.monotonic() + PATIENCE
        while self._process and self._process.poll() is None and time.monotonic() < end:
            try:
                if self._pool.request("GET", f"{self.url}/api/healthz").status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"Gitea isn't ready; it said:\n{self.said()[-5000:]}")

    def _administrator(self) -> Account:
        """Make the first account, which only the command line can."""
        password = "password-of-root"  # noqa: S105 - of nothing but tests
        named = ["--username", ADMIN, "--password", password, "--email", f"{ADMIN}@example.com", "--admin"]
        token = ["--access-token", "--access-token-name", "first", "--access-token-scopes", "all"]
        command = self._command("admin", "user", "create", *named, *token)
        done = subprocess.run(command, cwd=self.root, env=self._environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"Gitea makes no account: {done.stdout}{done.stderr}")
        return Account(ADMIN, password, done.stdout.split()[-1])
