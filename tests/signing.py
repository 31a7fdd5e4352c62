"""Keys and signatures as people make them: ssh-keygen, gpg and `git commit -S`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from infra.githost import Work

SSH = ("-c", "gpg.format=ssh")


def at(day: str) -> tuple[str, str]:
    """Return gpg's flags that stop its clock at a day (YYYYMMDD): a running one made a subkey older than its key on a busy machine."""
    return "--faked-system-time", f"{day}T000000!"


def ssh_key(directory: Path, name: str, kind: str = "ed25519", bits: int = 0) -> Path:
    """Make a key pair; return the private one's place."""
    place = directory / name
    more = ["-b", str(bits)] if bits else []
    subprocess.run(["ssh-keygen", "-q", "-t", kind, *more, "-N", "", "-C", name, "-f", str(place)], check=True, capture_output=True)
    return place


def public(key: Path) -> str:
    """Return a key's line as authorized_keys has it."""
    return key.with_name(f"{key.name}.pub").read_text().strip()


def signed_by_ssh(work: Work, key: Path, message: str) -> str:
    """Commit everything, signed; return the commit's id."""
    work.git("add", "--all")
    work.git(*SSH, "-c", f"user.signingkey={key}", "commit", "-q", "--allow-empty", "-S", "-m", message)
    return work.git("rev-parse", "HEAD")


def raw(work: Work, sha: str) -> bytes:
    """Return a commit object as git keeps it."""
    done = subprocess.run(["git", "cat-file", "commit", sha], cwd=work.directory, check=True, capture_output=True)
    return done.stdout


class Gpg:
    """A keyring of its own, with its agent, which ends with it."""

    def __enter__(self) -> Self:
        self.home = Path(tempfile.mkdtemp(prefix="anneal-gpg-"))  # short: the agent's socket is in it
        self.program = self.home / "program"
        self.program.write_text(f'#!/bin/sh\nexec gpg --homedir {self.home} --batch --quiet "$@"\n')
        self.program.chmod(0o700)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        subprocess.run(["gpgconf", "--homedir", str(self.home), "--kill", "all"], check=False, capture_output=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run gpg without a passphrase; return what it printed."""
        flags = ("--pinentry-mode", "loopback", "--passphrase", "")
        done = subprocess.run([str(self.program), *flags, *arguments], input=stdin, text=True, check=True, capture_output=True)
        return done.stdout

    def key(self, who: str, kind: str = "ed25519", expire: str = "never", *flags: str) -> str:
        """Make a key pair that signs; return its fingerprint."""
        self.run(*flags, "--quick-generate-key", who, kind, "sign", expire)
        listed = self.run("--with-colons", "--list-keys", who)
        return next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))

    def public(self, who: str) -> str:
        """Return a certificate, armored."""
        return self.run("--armor", "--export", who)

    def commit(self, work: Work, key: str, message: str, *flags: str) -> str:
        """Commit everything, signed with these flags of gpg; return the commit's id."""
        program = self.home / "flagged"
        program.write_text(f'#!/bin/sh\nexec {self.program} {" ".join(flags)} "$@"\n')
        program.chmod(0o700)
        work.git("add", "--all")
        work.git("-c", f"gpg.program={program}", "-c", f"user.signingkey={key}", "commit", "-q", "--allow-empty", "-S", "-m", message)
        return work.git("rev-parse", "HEAD")
