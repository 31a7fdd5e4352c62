"""What SOPS has encrypted, decrypted by the real sops behind its walls: every format, every renderer, and what stays masked."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.model.errors import AnnealError, DecryptionRefused, ManifestInvalid, RendererUnavailable, SourceRefused
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox
from handler.render.programs import private_directories
from handler.render.sops.decrypted_tree import DecryptedTree
from handler.render.sops.decryptor import Decryptor
from tests.fakes.source_tree import FakeTree
from tests.patience import PATIENCE
from tests.rooms.render.kustomize_trees import public_tools
from tests.rooms.render.sops_files import (
    ALICE,
    BOB,
    CANARY,
    CONFIG,
    SECRET,
    VALUES,
    HeldKeys,
    bare,
    decryptor,
    encrypted,
    plain,
    render,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


def text_of(made: Rendered, key: str = "password") -> str:
    bodies: list[dict[str, Any]] = [each.body() for each in made.manifests]
    (body,) = [each for each in bodies if each["kind"] == "Secret"]
    return base64.b64decode(body["data"][key]).decode()


# --- what sops itself prints
MANY = "# a comment\na: 5\nb: true\nc: [1.5, x, null]\nd:\n  # note\n  e: |\n    multi\n    line\nf: 'quoted: yes'\n"
LARGE = "".join(f"KEY_{number}=value {number} {'x' * 50}\n" for number in range(3_000))
GOLDENS: dict[str, tuple[str, str | bytes, tuple[str, ...]]] = {
    "yaml": ("a.yaml", SECRET, ()),
    "yml": ("a.yml", MANY, ()),
    "documents": ("a.yaml", f"{SECRET}---\n{CONFIG}---\n{MANY}", ()),
    "regex": ("a.yaml", SECRET, VALUES),
    "suffix": ("a.yaml", "a: x\nb_open: y\n", ("--unencrypted-suffix", "_open")),
    "unencrypted regex": ("a.yaml", SECRET, ("--unencrypted-regex", "^(apiVersion|kind|metadata)$")),
    "encrypted suffix": ("a.yaml", "a: x\nb_secret: y\n", ("--encrypted-suffix", "_secret")),
    "comments": ("a.yaml", "# sops:enc\na: x\nb: y\n", ("--encrypted-comment-regex", "sops:enc")),
    "mac of encrypted values alone": ("a.yaml", SECRET, (*VALUES, "--mac-only-encrypted")),
    "json": ("a.json", '{"a": {"b": 1, "c": "ü😀\\u0001", "d": [true, null, "x"]}}', ()),
    "data in json": ("a.json", '{"data": "x"}', ()),
    "docker": (
        ".dockerconfigjson",
        '{"auths": {"r.example.com": {"auth": "YW5uOmh1bnRlcjI="}}}',
        ("--input-type", "json", "--output-type", "json"),
    ),
    "dotenv": ("a.env", 'A=b\n# a comment\nC=d "e"\nEMPTY=\nMANY=a\\nb\n', ()),
    "ini": ("a.ini", "top=1\n[part]\n; a comment\na = b\nc = d#e\n", ()),
    "ini whose metadata are quoted": ("a.ini", "[part]\na = b\nc = d\n", ("--encrypted-regex", "^a$|`")),
    "binary": ("a.bin", bytes(range(256)) * 10, ()),
    "binary of text": ("motd", "hello\n", ()),
    "large": ("a.env", LARGE, ()),
    "utf-8": ("a.yaml", "ключ: значение\nb: 日本語 \U0001f600\n", ()),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_what_is_decrypted_is_what_sops_prints(sandbox: Sandbox, name: str) -> None:
    path, text, flags = GOLDENS[name]
    data = encrypted(path, text, *flags)
    typed = flags if "--input-type" in flags else ()
    assert plain(sandbox, f"deploy/{path}", data) == bare(path, data, *typed)


def test_yaml_without_its_block_style_is_decrypted(sandbox: Sandbox) -> None:
    data = encrypted("a.json", '{"a": "x", "n": {"b": "y"}}')
    assert json.loads(plain(sandbox, "deploy/a.json", data)) == {"a": "x", "n": {"b": "y"}}
    assert plain(sandbox, "deploy/a.yaml", data) == bare("a.yaml", data)


def test_documents_that_were_encrypted_one_by_one_are_decrypted_one_by_one(sandbox: Sandbox) -> None:
    one, other = (encrypted("a.yaml", SECRET.replace("login", name), *VALUES).decode() for name in ("one", "other"))
    made = render(sandbox, {"deploy/a.yaml": f"{one}---\n{CONFIG}---\n{other}"}, decryptor())
    assert [str(each.identity) for each in made.manifests] == ["Secret/one", "ConfigMap/plain", "Secret/other"]
    assert CANARY.encode() not in made.manifests[1].raw


def test_a_byte_order_mark_moves_nothing(sandbox: Sandbox) -> None:
    data = b"\xef\xbb\xbf" + encrypted("a.yaml", SECRET, *VALUES)
    assert plain(sandbox, "deploy/a.yaml", data) == bare("a.yaml", data)


@pytest.mark.parametrize("end", ["", "---\n", "---\n# the end\n"])
def test_a_document_that_holds_nothing_is_left_out(sandbox: Sandbox, end: str) -> None:
    data = encrypted("a.yaml", f"{SECRET}---\n---\n{SECRET.replace('login', 'other')}---\n", *VALUES)
    assert bare("a.yaml", data).count(b"{}") == 2, "what sops prints of it is no object"
    made = render(sandbox, {"deploy/a.yaml": data + end.encode()}, decryptor())
    assert [str(each.identity) for each in made.manifests] == ["Secret/login", "Secret/other"]


def test_an_openssh_key_opens_a_file(sandbox: Sandbox) -> None:
    with tempfile.TemporaryDirectory() as directory:
        key = Path(directory, "key")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=PATIENCE)
        secret, public = key.read_text(), " ".join(Path(f"{key}.pub").read_text().split()[:2])
    data = encrypted("a.yaml", SECRET, to=public)
    assert text_of(render(sandbox, {"deploy/a.yaml": data}, decryptor(HeldKeys((secret,))))) == CANARY


def test_a_secret_holds_several_keys_and_comments(sandbox: Sandbox) -> None:
    keys = f"# created: today\n# public key: {BOB.recipient}\n{BOB.secret}\n\n# the other\n{ALICE.secret}\n"
    assert text_of(render(sandbox, {"deploy/a.yaml": encrypted("a.yaml", SECRET)}, decryptor(HeldKeys((keys,))))) == CANARY


# --- every renderer
KUSTOMIZED = {
    "deploy/kustomization.yaml": (
        "resources: [login.yaml]\nsecretGenerator:\n- name: made\n  envs: [login.env]\n  files: [login.txt, config=login.ini]\n"
        "  options: {disableNameSuffixHash: true}\npatches: [{path: patch.yaml}]\n"
    ),
}


def kustomized() -> dict[str, str | bytes]:
    patch = SECRET.replace(CANARY, f"patched-{CANARY}")
    return {
        **KUSTOMIZED,
        "deploy/login.yaml": encrypted("login.yaml", SECRET, *VALUES),
        "deploy/patch.yaml": encrypted("patch.yaml", patch, *VALUES),
        "deploy/login.env": encrypted("login.env", f"TOKEN=env-{CANARY}\n"),
        "deploy/login.txt": encrypted("login.txt", f"text-{CANARY}"),
        "deploy/login.ini": encrypted("login.ini", f"[login]\npassword = ini-{CANARY}\n"),
    }


def test_kustomize_builds_with_plain_resources_patches_and_generator_inputs(sandbox: Sandbox) -> None:
    made = render(sandbox, kustomized(), decryptor(), "kustomize")
    data = {each.identity.name: each.body()["data"] for each in made.manifests}
    assert base64.b64decode(data["login"]["password"]).decode() == f"patched-{CANARY}"
    assert base64.b64decode(data["made"]["TOKEN"]).decode() == f"env-{CANARY}"
    assert base64.b64decode(data["made"]["login.txt"]).decode() == f"text-{CANARY}"
    assert f"ini-{CANARY}" in base64.b64decode(data["made"]["config"]).decode()
    hidden = {each.identity.name: each.hidden for each in made.manifests}
    assert hidden == {"login": ("/data/password", "/data/user"), "made": ("/data/TOKEN", "/data/config", "/data/login.txt")}


CHART = {
    "deploy/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
    "deploy/templates/a.yaml": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData:\n"
        '  password: {{ .Values.password | quote }}\n  file: {{ .Files.Get "files/login.json" | quote }}\n'
    ),
}


def test_a_file_that_no_kustomization_names_needs_no_key(sandbox: Sandbox) -> None:
    beside: dict[str, str | bytes] = {
        "deploy/other/kustomization.yaml": "resources: [login.yaml]\n",
        "deploy/other/login.yaml": encrypted("a.yaml", SECRET, *VALUES, to=BOB.recipient),
        "deploy/talos.yaml": encrypted("a.yaml", "a: b\n", to=BOB.recipient),
    }
    assert len(render(sandbox, {**kustomized(), **beside}, decryptor(), "kustomize").manifests) > 1
    named: dict[str, str | bytes] = {"deploy/kustomization.yaml": "resources: [other]\n"}
    with pytest.raises(DecryptionRefused) as refused:
        render(sandbox, {**kustomized(), **beside, **named}, decryptor(), "kustomize")
    assert [each.subject for each in refused.value.problems] == ["deploy/other/login.yaml"]


def test_helm_reads_plain_values_and_plain_files_of_its_chart(sandbox: Sandbox) -> None:
    values = encrypted("values.yaml", f"password: {CANARY}\nlevel: info\n")
    files: dict[str, str | bytes] = {
        **CHART,
        "env/values.yaml": values,
        "deploy/files/login.json": encrypted("login.json", '{"key": "file-hunter2"}'),
    }
    made = render(sandbox, files, decryptor(), "helm", RendererSettings(values_files=("../env/values.yaml",)))
    assert text_of(made) == CANARY
    assert json.loads(text_of(made, "file")) == {"key": "file-hunter2"}
    assert [each.hidden for each in made.manifests] == [("/data/file", "/data/password")]


def test_ids_are_gits_and_the_reads_hold_the_tool(sandbox: Sandbox) -> None:
    files: dict[str, str | bytes] = {"deploy/a.yaml": encrypted("a.yaml", SECRET), "deploy/b.yaml": CONFIG}
    made = render(sandbox, files, decryptor())
    undecrypted = dict(RENDERERS["file"].render(FakeTree({"deploy/b.yaml": CONFIG}), RenderRequest("deploy"), sandbox).reads.paths)
    reads = dict(made.reads.paths)
    assert reads.keys() == {*undecrypted, "//tool/sops"}
    assert reads["deploy"] == FakeTree(files).lookup("deploy").oid  # type: ignore[union-attr]  # it is there
    assert made.encrypted == (FakeTree(files).lookup("deploy/a.yaml").oid,)  # type: ignore[union-attr]  # it is there


def test_a_tree_without_encrypted_files_needs_no_sops_and_asks_no_key(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNEAL_TOOLS", "/nonexistent")
    monkeypatch.setenv("PATH", "")

    class Unasked(HeldKeys):
        def age(self) -> tuple[str, ...]:
            raise AssertionError("a key was asked")

    text = "a: ENC[AES256_GCM, an example, is how sops: begins\n"
    made = render(sandbox, {"deploy/b.yaml": CONFIG}, decryptor(Unasked()))
    assert "//tool/sops" not in dict(made.reads.paths)
    assert plain(sandbox, "deploy/README.md", text.encode(), decryptor(HeldKeys())) == text.encode()


def test_a_second_render_runs_no_sops_and_still_hides_the_values(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    by = decryptor()
    files: dict[str, str | bytes] = {"deploy/a.yaml": encrypted("a.yaml", SECRET), "deploy/b.yaml": CONFIG}
    first = render(sandbox, files, by)
    assert [path for path, _ in first.files] == ["deploy/b.yaml"], "what was decrypted is read anew"
    run = Sandbox.run
    called: list[str] = []

    def counted(self: Sandbox, function: str, *arguments: Any, **named: Any) -> Any:
        called.append(function)
        return run(self, function, *arguments, **named)

    monkeypatch.setattr(Sandbox, "run", counted)
    again = render(sandbox, files, by, request=RenderRequest("deploy", known=first.files, weak=True))
    assert "sops" not in called
    assert (again.manifests, again.reads) == (first.manifests, first.reads)
    assert [each.hidden for each in again.manifests] == [each.hidden for each in first.manifests]
    render(sandbox, {"deploy/b.yaml": CONFIG}, by)
    render(sandbox, files, by)
    assert "sops" in called, "what a render didn't use was forgotten"


# --- what may open a file
def test_without_keys_what_is_encrypted_is_refused_with_the_block_to_write(sandbox: Sandbox) -> None:
    with pytest.raises(ManifestInvalid, match="is still encrypted by SOPS") as refused:
        render(sandbox, {"deploy/a.yaml": encrypted("a.yaml", SECRET, *VALUES)}, None)
    (found,) = refused.value.problems
    assert ALICE.recipient in found.message
    assert "decryption: {age: [{file: /etc/anneal/age.txt}]}" in found.fix


def test_a_file_for_another_target_stays_closed(sandbox: Sandbox) -> None:
    stolen = encrypted("a.yaml", SECRET, *VALUES, to=BOB.recipient)
    with pytest.raises(DecryptionRefused) as refused:
        render(sandbox, {"deploy/a.yaml": stolen, "deploy/b.yaml": encrypted("b.yaml", SECRET)}, decryptor())
    (found,) = refused.value.problems
    assert found.subject == "deploy/a.yaml"
    assert f"is encrypted by SOPS for {BOB.recipient}; target shop lists {ALICE.recipient}" in found.message
    assert f"add the private key of {BOB.recipient} to a secret of target shop" in found.fix
    assert ALICE.secret not in f"{refused.value!r}{decryptor()!r}"


def test_files_are_refused_in_their_order_and_secrets_without_a_key_are_told(sandbox: Sandbox) -> None:
    files = {f"deploy/{name}.yaml": encrypted("a.yaml", f"{SECRET}# {name}\n") for name in "dbeac"}
    with pytest.raises(DecryptionRefused, match="target shop lists age secrets without a key that can be read") as refused:
        render(sandbox, dict(files), decryptor(HeldKeys(("# no key", "AGE-SECRET-KEY-1X"))))
    assert [each.subject for each in refused.value.problems] == sorted(files)


def test_keys_of_other_kinds_are_named_and_never_used(sandbox: Sandbox) -> None:
    whole = json.loads(encrypted("a.json", '{"a": "x"}'))
    whole["sops"].update(
        pgp=[{"created_at": "", "enc": "x", "fp": "ABCD1234"}],
        gcp_kms=[{"resource_id": "projects/p/k", "enc": "x", "created_at": ""}],
        azure_kv=[{"vault_url": "https://127.0.0.1:9", "name": "k", "version": "1", "enc": "x", "created_at": ""}],
        hc_vault=[{"vault_address": "http://127.0.0.1:9", "engine_path": "e", "key_name": "n", "enc": "x", "created_at": ""}],
        kms=[{"arn": ARN, "role": "arn:aws:iam::123456789012:role/all", "enc": "eA==", "created_at": "", "aws_profile": ""}],
    )
    assert plain(sandbox, "deploy/a.json", json.dumps(whole).encode()), "the age key is enough"
    del whole["sops"]["age"]
    keys = HeldKeys((ALICE.secret,))
    with pytest.raises(DecryptionRefused) as refused:
        plain(sandbox, "deploy/a.json", json.dumps(whole).encode(), decryptor(keys, kms=(ARN,)))
    said = str(refused.value)
    for each in (
        "PGP ABCD1234",
        "Google Cloud KMS projects/p/k",
        "Azure Key Vault",
        "Vault http://127.0.0.1:9 n",
        "by a role that the file chooses",
    ):
        assert each in said
    assert keys.asked == []


ARN = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def test_a_key_of_kms_that_the_target_doesnt_list_is_never_asked(sandbox: Sandbox) -> None:
    whole = json.loads(encrypted("a.json", '{"a": "x"}'))
    whole["sops"]["kms"] = [{"arn": ARN, "enc": "eA==", "created_at": "", "aws_profile": ""}]
    del whole["sops"]["age"]
    keys = HeldKeys((ALICE.secret,))
    with pytest.raises(DecryptionRefused, match=f"is encrypted by SOPS for {ARN}") as refused:
        plain(sandbox, "deploy/a.json", json.dumps(whole).encode(), decryptor(keys))
    assert f"decryption: {{kms: [{ARN}]}}" in str(refused.value)
    assert keys.asked == []


# --- the MAC
def tampered() -> bytes:
    return encrypted("a.yaml", SECRET, *VALUES).replace(b"name: login", b"name: other")


def test_a_wrong_mac_is_refused_with_the_setting_that_lets_it_pass(sandbox: Sandbox) -> None:
    with pytest.raises(ManifestInvalid, match="its MAC is another") as refused:
        render(sandbox, {"deploy/a.yaml": tampered()}, decryptor())
    (found,) = refused.value.problems
    assert (found.subject, "decryption: {mac: ignore}" in found.fix) == ("deploy/a.yaml", True)
    made = render(sandbox, {"deploy/a.yaml": tampered()}, decryptor(mac="ignore"))
    assert [str(each.identity) for each in made.manifests] == ["Secret/other"]


# --- memory, and what texts show
def test_programs_get_what_was_decrypted_in_memory_or_not_at_all(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        places: list[str] = []
        locked = private_directories._locked_base

        def noted(parent: str) -> tuple[str, int]:
            places.append(parent)
            return locked(parent)

        patch.setattr(private_directories, "_locked_base", noted)
        with Sandbox() as fresh:
            render(fresh, kustomized(), decryptor(), "kustomize")
        assert private_directories.MEMORY in places or private_directories._in_memory(places[-1])
    monkeypatch.setattr(private_directories, "_in_memory", lambda _: False)
    with Sandbox() as other, pytest.raises(RendererUnavailable, match=r"neither .* is in memory") as refused:
        render(other, kustomized(), decryptor(), "kustomize")
    assert "emptyDir: {medium: Memory}" in str(refused.value)


def test_a_renderer_that_quotes_what_it_reads_shows_nothing(sandbox: Sandbox) -> None:
    values = encrypted("values.yaml", f"password: {CANARY}\n")
    failing: dict[str, str | bytes] = {
        **CHART,
        "deploy/templates/b.yaml": '{{ fail (printf "it is %s" .Values.password) }}\n',
        "env/values.yaml": values,
    }
    with pytest.raises(AnnealError) as refused:
        render(sandbox, failing, decryptor(), "helm", RendererSettings(values_files=("../env/values.yaml",)))
    assert "it is encryptedplaceholder" in str(refused.value)
    assert CANARY not in f"{refused.value}{refused.value!r}{refused.value.args}"


def test_nothing_decrypted_is_in_a_repr(sandbox: Sandbox) -> None:
    by = decryptor()
    made = render(sandbox, {"deploy/a.yaml": encrypted("a.yaml", SECRET)}, by)
    tree = DecryptedTree(FakeTree({"a.yaml": encrypted("a.yaml", SECRET)}), by, sandbox, weak=True)
    tree.blobs([entry.oid for entry in tree.walk("")])
    assert CANARY not in f"{by!r}{tree!r}{tree.used!r}{made.reads!r}{made.notes!r}"


# --- names
def test_one_blob_that_two_names_make_two_formats_is_refused(sandbox: Sandbox) -> None:
    data = encrypted("a.bin", "x")
    tree = DecryptedTree(FakeTree({"a.bin": data, "b.json": data}), decryptor(), sandbox, weak=True)
    with pytest.raises(SourceRefused, match="their names make it two formats"):
        tree.blobs([entry.oid for entry in tree.walk("")])


def test_names_are_no_paths(sandbox: Sandbox) -> None:
    data = encrypted("a.env", "A=b\n")
    assert plain(sandbox, "deploy/..%2f$(touch x)\u202e.env", data) == b"A=b\n"
    assert plain(sandbox, "deploy/--extract.env", data) == b"A=b\n"


# --- placeholders
def test_placeholders_need_neither_key_nor_sops(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNEAL_TOOLS", "/nonexistent")
    monkeypatch.setenv("PATH", os.devnull)
    secret = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\ndata:\n  password: {base64.b64encode(CANARY.encode()).decode()}\n"
    files: dict[str, str | bytes] = {"deploy/a.yaml": encrypted("a.yaml", secret, *VALUES), "deploy/b.yaml": encrypted("b.yaml", CONFIG)}
    by = Decryptor("shop", decryptor()._settings, None)
    made = render(sandbox, files, by)
    assert [str(each.identity) for each in made.manifests] == ["Secret/login"]
    base64.b64decode(made.manifests[0].body()["data"]["password"], validate=True)
    assert b"sops" not in made.manifests[0].raw
    assert any("1 objects are left out" in note for note in made.notes)
    assert "//tool/sops" not in dict(made.reads.paths)
