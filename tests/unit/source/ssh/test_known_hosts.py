"""What a known_hosts file says about a host: every form of a line that ssh-keyscan, ssh-keygen and people write."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from handler.model.errors import ConfigInvalid
from handler.source.ssh.known_hosts import HostKey, host_name, pinned


def key(name: bytes, kind: str = "ssh-ed25519") -> HostKey:
    return HostKey(kind, len(kind).to_bytes(4, "big") + kind.encode() + b"\0\0\0\x20" + name.ljust(32, b"."))


ONE, TWO = key(b"one"), key(b"two")
RSA = key(b"rsa", "ssh-rsa")


def line(names: str, each: HostKey, marker: str = "") -> str:
    return f"{marker} {names} {each.kind} {base64.b64encode(each.blob).decode()} a comment\n".lstrip()


def written(directory: Path, *lines: str) -> str:
    file = directory / "known_hosts"
    file.write_text("".join(lines))
    return str(file)


@pytest.mark.parametrize(
    ("names", "host", "port", "found"),
    [
        ("git.example.com", "git.example.com", 22, True),
        ("git.example.com", "GIT.example.com", 22, True),
        ("Git.Example.com", "git.example.com", 22, True),
        ("git.example.com", "git.example.com", 2222, False),
        ("[git.example.com]:2222", "git.example.com", 2222, True),
        ("[git.example.com]:2222", "git.example.com", 22, False),
        ("[git.example.com]:2222", "git.example.com", 22222, False),
        ("other,git.example.com,192.0.2.1", "git.example.com", 22, True),
        ("*.example.com", "git.example.com", 22, True),
        ("*.example.com", "git.example.org", 22, False),
        ("*.example.com,!git.example.com", "git.example.com", 22, False),
        ("!git.example.com,*.example.com", "web.example.com", 22, True),
        ("gi?.example.com", "git.example.com", 22, True),
        ("git.example.co[m]", "git.example.com", 22, False),
        ("[2001:db8::1]:2222", "2001:DB8::1", 2222, True),
        ("2001:db8::1", "2001:db8::1", 22, True),
        ("!git.example.com", "git.example.com", 22, False),
        ("|1|c2FsdA==", "git.example.com", 22, False),
        ("|2|c2FsdA==|aGFzaA==", "git.example.com", 22, False),
        ("|1|c2FsdA==|aGFzaA==", "git.example.com", 22, False),
    ],
)
def test_names_cover_a_host_as_openssh_says(tmp_path: Path, names: str, host: str, port: int, found: bool) -> None:
    assert pinned(written(tmp_path, line(names, ONE)), host, port).trusts(ONE.blob) is found


def test_a_host_is_named_with_its_port_unless_it_is_22() -> None:
    assert [host_name("Git", 22), host_name("git", 2222)] == ["git", "[git]:2222"]


@pytest.mark.parametrize("name", ["git.example.com", "[git.example.com]:2222"])
def test_names_that_ssh_keygen_hashed_are_found(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, line(name, ONE), line("other.example.com", TWO))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, capture_output=True)
    assert "example" not in Path(file).read_text().replace("a comment", "")
    port = 2222 if ":" in name else 22
    assert pinned(file, "git.example.com", port).trusted == {ONE}
    assert pinned(file, "git.example.com", 2022).trusted == frozenset()


def test_all_keys_of_a_host_count_and_comments_are_passed_over(tmp_path: Path) -> None:
    file = written(tmp_path, "# ours\n", "\n", line("git", ONE), "  " + line("git", TWO), line("git", RSA), line("web", key(b"web")))
    found = pinned(file, "git", 22)
    assert found.trusted == {ONE, TWO, RSA}
    assert found.kinds == {"ssh-ed25519", "ssh-rsa"}


@pytest.mark.parametrize("names", ["*", "git", "[git]:2222"])
def test_a_revoked_key_isnt_trusted_however_often_it_is_listed(tmp_path: Path, names: str) -> None:
    found = pinned(written(tmp_path, line("[git]:2222", ONE), line("[git]:2222", TWO), line(names, ONE, "@revoked")), "git", 2222)
    assert (found.trusts(ONE.blob), found.trusts(TWO.blob)) == (False, True)


def test_a_cert_authority_line_is_no_host_key(tmp_path: Path) -> None:
    assert pinned(written(tmp_path, line("git", ONE, "@cert-authority")), "git", 22).trusted == frozenset()


@pytest.mark.parametrize(
    "damaged",
    [
        "git ssh-ed25519\n",
        "git ssh-ed25519 not-base64\n",
        "git ssh-ed25519 AAAA\n",
        line("git", ONE).replace("ssh-ed25519", "ssh-rsa"),
        line("git", ONE, "@trusted"),
        "@revoked\n",
    ],
)
def test_a_damaged_known_hosts_line_is_refused_with_its_number(tmp_path: Path, damaged: str) -> None:
    file = written(tmp_path, line("git", TWO), damaged)
    with pytest.raises(ConfigInvalid, match=r"known_hosts:2: known_hosts: "):
        pinned(file, "git", 22)


def test_a_known_hosts_file_that_lacks_or_exceeds_the_size_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"can't be read: No such file.*knownHosts"):
        pinned(str(tmp_path / "none"), "git", 22)
    with pytest.raises(ConfigInvalid, match="is larger than"):
        pinned(written(tmp_path, "#" * (4 << 20) + "\n"), "git", 22)
