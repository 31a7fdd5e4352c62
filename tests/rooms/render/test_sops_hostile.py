"""Encrypted files whose author is hostile: what their metadata says opens, reaches, reads and starts nothing, and no key is shown."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyrage
import pytest

from handler.config.decryption import Decryption
from handler.config.post_build import PostBuild
from handler.config.settings_shape import Json
from handler.model.deadline import until
from handler.model.errors import AnnealError, DecryptionRefused, ManifestInvalid, RenderFailed, Stopping
from handler.model.render import RenderRequest
from handler.render import Sandbox
from handler.render.sops import decryptor as decryptor_module
from handler.render.sops.decryptor import Decryptor
from tests.patience import PATIENCE
from tests.rooms.render.kustomize_trees import public_tools
from tests.rooms.render.sops_files import ALICE, BOB, CANARY, SECRET, VALUES, HeldKeys, decryptor, encrypted, render


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def yaml() -> str:
    return encrypted("a.yaml", SECRET, *VALUES).decode()


def refused(sandbox: Sandbox, text: str | bytes, name: str = "a.yaml") -> AnnealError:
    with pytest.raises(AnnealError) as caught:
        render(sandbox, {f"deploy/{name}": text}, decryptor())
    said = f"{caught.value}{caught.value!r}"
    assert ALICE.secret not in said
    assert CANARY not in said
    return caught.value


def changed(**metadata: Any) -> str:
    """Return a file whose metadata has other fields; None: one that it lacks."""
    whole = json.loads(encrypted("a.json", '{"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA=="}}', *VALUES))
    merged = {**whole["sops"], **metadata}
    whole["sops"] = {name: value for name, value in merged.items() if value is not None}
    return json.dumps(whole)


AGE = {"recipient": ALICE.recipient, "enc": "x"}


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"age": [AGE] * 101}, "more than 100 keys in age"),
        ({"age": [{**AGE, "enc": "x" * 20_000}]}, "20,000 characters in enc"),
        ({"age": {"a": 1}}, "age is no list of keys"),
        ({"age": [{"recipient": 5, "enc": "x"}]}, "no text in recipient"),
        ({"age": []}, "names no key that it is encrypted for"),
        ({"kms": [{"arn": "a", "enc": "x", "context": ["b"]}]}, "encryption context"),
        ({"mac": "ENC[AES256_GCM," * 2_000}, "30,000 characters in mac"),
        ({"version": 3}, "no text in version"),
        ({"lastmodified": None}, "lacks mac, version or lastmodified"),
        ({"key_groups": [{"age": [AGE]}]}, "split among key groups"),
        ({"shamir_threshold": 2}, "split among key groups"),
        ({"encrypted_regex": "a" * 5_000}, "5,000 characters in encrypted_regex"),
    ],
)
def test_metadata_that_breaks_a_rule_is_refused_by_its_name(sandbox: Sandbox, metadata: dict[str, Any], said: str) -> None:
    error = refused(sandbox, changed(**metadata), "a.json")
    assert isinstance(error, ManifestInvalid)
    assert said in str(error)
    assert error.problems[0].subject == "deploy/a.json"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("sops:\n", "sops: &here\n"),
        lambda text: text.replace("    version:", "    <<: *here\n    version:").replace("stringData:", "stringData: &here", 1),
        lambda text: text.replace("    version: ", "    version: !!str "),
        lambda text: text + "sops: {mac: 'ENC[AES256_GCM,x]'}\n",
        lambda text: text.replace("    version:", "    mac: x\n    version:"),
        lambda text: text[: text.index("    mac:") + 30],
        lambda text: text.replace("sops:\n", "sops:\n    deep: " + "[" * 5_000 + "\n"),
        lambda text: (
            "a: &a [x, x, x, x]\n"
            + "".join(f"{n}: &{n} [{', '.join([f'*{o}'] * 50)}]\n" for o, n in zip("abcdef", "bcdefg", strict=True))
            + text
        ),
    ],
    ids=["anchor", "alias", "tag", "twice", "key twice", "truncated", "deep", "bomb"],
)
def test_yaml_whose_metadata_is_no_plain_mapping_is_refused(sandbox: Sandbox, yaml: str, change: Any) -> None:
    assert change(yaml) != yaml
    assert isinstance(refused(sandbox, change(yaml)), ManifestInvalid)


@pytest.mark.parametrize("length", [60, 400, 900])
def test_a_file_that_is_cut_off_never_passes(sandbox: Sandbox, yaml: str, length: int) -> None:
    for name, text in (("a.yaml", yaml), ("a.json", changed())):
        refused(sandbox, text[:length], name)


@pytest.mark.parametrize("name", ["a.env", "a.ini", "a.bin"])
def test_an_input_of_a_generator_that_is_cut_off_never_passes(sandbox: Sandbox, name: str) -> None:
    files: dict[str, str | bytes] = {
        "deploy/kustomization.yaml": f"secretGenerator: [{{name: a, files: [{name}]}}]\n",
        f"deploy/{name}": encrypted(name, "a=b\n" if name == "a.env" else "[p]\na = b\n")[:100],
    }
    with pytest.raises(ManifestInvalid, match="it is cut off"):
        render(sandbox, files, decryptor(), "kustomize")


def test_json_with_two_blocks_or_a_key_twice_is_refused(sandbox: Sandbox) -> None:
    text = changed()
    assert "more than one `sops`" in str(refused(sandbox, text[:-1] + ', "sops": {"mac": "x"}}', "a.json"))
    assert "a key twice" in str(refused(sandbox, text.replace('"version":', '"mac": "x", "version":'), "a.json"))


def test_dotenv_and_ini_with_metadata_twice_are_refused(sandbox: Sandbox) -> None:
    env = encrypted("a.env", "A=b\n").decode()
    kustomization = "secretGenerator: [{name: a, envs: [a.env]}]\n"
    for text in (
        f"{env}sops_version=x\n",
        f"{env}sops_age__list_x__map_=y\n",
        env.replace("sops_mac", "sops_mac__map_a__map_b__map_c__map_d=x\nsops_mac"),
    ):
        with pytest.raises(ManifestInvalid):
            render(sandbox, {"deploy/kustomization.yaml": kustomization, "deploy/a.env": text}, decryptor(), "kustomize")
    ini = encrypted("a.ini", "[p]\na = b\n").decode()
    for text in (f"{ini}\n[sops]\nmac = ENC[AES256_GCM,x]\n", ini.replace("version ", "version = 1\nversion ")):
        files = {"deploy/kustomization.yaml": "secretGenerator: [{name: a, files: [a.ini]}]\n", "deploy/a.ini": text}
        with pytest.raises(ManifestInvalid):
            render(sandbox, files, decryptor(), "kustomize")


def armored(payload: bytes, *to: str) -> str:
    made: bytes = pyrage.encrypt(payload, [pyrage.x25519.Recipient.from_str(each) for each in to], armored=True)
    return made.decode()


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda: armored(b"x" * 31, ALICE.recipient),
        lambda: armored(b"x" * 33, ALICE.recipient),
        lambda: armored(b"x" * 10_000, ALICE.recipient),
        lambda: pyrage.passphrase.encrypt(b"x" * 32, "password", armored=True).decode(),  # it works for a second, as scrypt shall
        lambda: "no age file at all",
        lambda: "-----BEGIN AGE ENCRYPTED FILE-----\nYWdl",
    ],
    ids=["short", "long", "large", "scrypt", "nonsense", "cut"],
)
def test_what_age_wraps_is_32_bytes_for_a_listed_key_or_nothing(sandbox: Sandbox, wrapped: Callable[[], str]) -> None:
    error = refused(sandbox, changed(age=[{"recipient": ALICE.recipient, "enc": wrapped()}]), "a.json")
    assert isinstance(error, DecryptionRefused)


def test_a_scrypt_stanza_of_a_huge_work_factor_costs_no_work(sandbox: Sandbox) -> None:
    """Its identity would take hours; the child has no more than its own limits, and passes over it."""
    bomb = "age-encryption.org/v1\n-> scrypt bG9uZ2VyIHNhbHQgMTYgYg 62\n" + "A" * 43 + "\n--- " + "A" * 43 + "\n" + "x" * 48
    assert isinstance(refused(sandbox, changed(age=[{**AGE, "enc": bomb}]), "a.json"), DecryptionRefused)


def test_the_key_of_another_file_opens_nothing(sandbox: Sandbox) -> None:
    """Its wrapped key is ours, and what it holds was encrypted by another."""
    other = json.loads(encrypted("a.json", '{"a": "x"}'))["sops"]["age"]
    assert "its data key doesn't open" in str(refused(sandbox, changed(age=other), "a.json"))


def test_recipients_are_texts_and_choose_no_key(sandbox: Sandbox, yaml: str) -> None:
    lying = encrypted("a.yaml", SECRET, *VALUES, to=BOB.recipient).decode().replace(BOB.recipient, ALICE.recipient)
    assert isinstance(refused(sandbox, lying), DecryptionRefused)
    renamed = yaml.replace(ALICE.recipient, BOB.recipient)
    assert render(sandbox, {"deploy/a.yaml": renamed}, decryptor()).manifests


def test_a_value_that_was_moved_is_refused(sandbox: Sandbox) -> None:
    text = encrypted("a.yaml", SECRET, *VALUES).decode()
    assert isinstance(refused(sandbox, text.replace("    password:", "    token:")), ManifestInvalid)


def test_a_path_that_looks_like_an_option_or_leads_elsewhere_is_only_text(sandbox: Sandbox, yaml: str) -> None:
    for name in ("--config=x.yaml", "$(touch x).yaml", "a\nb.yaml"):
        assert render(sandbox, {f"deploy/{name}": yaml}, decryptor()).manifests


def test_many_documents_are_bounded(sandbox: Sandbox, yaml: str) -> None:
    distinct = (yaml.replace('lastmodified: "2', f'lastmodified: "{2 + number % 7}{number}') for number in range(501))
    assert "more than 500 encrypted documents" in str(refused(sandbox, "---\n".join(distinct)))


def test_a_file_beyond_what_is_read_is_refused(sandbox: Sandbox) -> None:
    assert "at most 10,000,000 are decrypted" in str(refused(sandbox, changed() + " " * 10_000_000, "a.json"))


def test_what_expands_beyond_the_limits_ends_there(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace  # noqa: PLC0415 - beside its only use

    from handler.render.sops import decryptor as module  # noqa: PLC0415 - the same

    monkeypatch.setattr(module, "LIMITS", replace(module.LIMITS, output=1_000))
    large = encrypted("a.yaml", SECRET.replace(CANARY, "x" * 5_000), *VALUES)
    with pytest.raises(RenderFailed, match="sops made more than 1,000 bytes of output"):
        render(sandbox, {"deploy/a.yaml": large}, decryptor(HeldKeys((ALICE.secret,))))


VARIABLES = RenderRequest("deploy", post_build=PostBuild(Json('{"tld":"org"}')), weak=True)


def test_variables_in_what_was_encrypted_are_written_out_and_stay_hidden(sandbox: Sandbox) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 'pa$$canary', y: 'a.${tld}:canary'}\n"
    files: dict[str, str | bytes] = {"deploy/a.yaml": encrypted("a.yaml", text, *VALUES)}
    made = render(sandbox, files, decryptor(), request=VARIABLES)
    (body,) = [each.body() for each in made.manifests]
    assert body["data"] == {"x": "pa$canary", "y": "a.org:canary"}
    assert [each.hidden for each in made.manifests] == [("/data/x", "/data/y")]


@pytest.mark.parametrize("value", ["a${canary", "a${canary}b", "${tld:=canary", "${tld/canary"])
def test_an_expression_in_what_was_encrypted_is_refused_without_it(sandbox: Sandbox, value: str) -> None:
    files: dict[str, str | bytes] = {"deploy/a.yaml": encrypted("a.yaml", SECRET.replace(CANARY, json.dumps(value)), *VALUES)}
    with pytest.raises(ManifestInvalid, match=r"fails with the values of deploy/a\.yaml, and not without them") as refused:
        render(sandbox, files, decryptor(), request=VARIABLES)
    assert "canary" not in str(refused.value)


ARN = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"age": [{**AGE, "enc": "\ud800"}]}, "half a character in enc"),
        ({"mac": "\udfff"}, "half a character in mac"),
        ({"age": [], "kms": [{"arn": ARN, "enc": "é"}]}, "that is no base64"),
    ],
)
def test_texts_that_are_none_are_refused_in_our_words(sandbox: Sandbox, metadata: dict[str, Any], said: str) -> None:
    by = decryptor(HeldKeys((ALICE.secret,)), kms=(ARN,))
    with pytest.raises(ManifestInvalid, match=said):
        render(sandbox, {"deploy/a.json": changed(**metadata)}, by)


def test_a_text_of_more_lines_adds_none_to_metadata_in_lines(sandbox: Sandbox) -> None:
    env = encrypted("a.env", "A=b\n").decode()
    files = {"deploy/kustomization.yaml": "secretGenerator: [{name: a, envs: [a.env]}]\n"}
    for text in ("sops_encrypted_regex=a\\nsops_age__list_1__map_recipient=x\n", "sops_encrypted_regex=a\rb\n"):
        with pytest.raises(ManifestInvalid, match="has more than one line"):
            render(sandbox, {**files, "deploy/a.env": env + text}, decryptor(), "kustomize")


def test_renders_that_fail_keep_nothing_large(sandbox: Sandbox, yaml: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decryptor_module, "_KEPT", 10)
    by = decryptor()
    for _ in range(2):
        with pytest.raises(ManifestInvalid):
            render(sandbox, {"deploy/a.yaml": yaml, "deploy/b.yaml": "a: b\n"}, by)
    assert not by._kept


class Refusing(Sandbox):
    """Ends the first call of sops, and each other once the batch's end is known. `calls`: how many there were."""

    def __init__(self, known: threading.Event) -> None:
        super().__init__()
        self.calls: list[int] = []
        self._known, self._numbers = known, itertools.count()

    def run(self, function: str, *arguments: Any, **options: Any) -> Any:
        if function != decryptor_module.TOOL:
            return super().run(function, *arguments, **options)
        self.calls.append(number := next(self._numbers))
        assert number == 0 or self._known.wait(PATIENCE)
        raise RenderFailed.of("sops", "was ended")


def test_what_was_ended_ends_the_rest_of_its_batch(yaml: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = threading.Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            if wait:
                known.set()
            super().shutdown(wait, cancel_futures=cancel_futures)
            known.set()

    monkeypatch.setattr(decryptor_module, "ThreadPoolExecutor", Pool)
    texts = {f"deploy/{number}.yaml": yaml + f"# {number}\n" for number in range(40)}
    with Refusing(known) as sandbox, pytest.raises(RenderFailed):
        render(sandbox, texts, decryptor())
    assert len(sandbox.calls) <= decryptor_module._AT_ONCE + 1


def test_a_batch_ends_where_no_time_is_left(sandbox: Sandbox, yaml: str) -> None:
    with until(time.monotonic()), pytest.raises(Stopping, match=r"deploy/a\.yaml: isn't decrypted, for no time is left"):
        render(sandbox, {"deploy/a.yaml": yaml}, decryptor())


class Silent(Sandbox):
    """Answers nothing for one function, as a child that was taken over may."""

    silent = ""

    def run(self, function: str, *arguments: Any, **options: Any) -> Any:
        return [] if function == self.silent else super().run(function, *arguments, **options)


@pytest.mark.parametrize("function", ["data keys", decryptor_module.TOOL, "placeholders"])
def test_a_child_that_answers_nothing_is_named(yaml: str, function: str) -> None:
    by = Decryptor("shop", Decryption(), None) if function == "placeholders" else decryptor()
    with Silent() as sandbox:
        sandbox.silent = function
        with pytest.raises(RenderFailed, match="was not answered by the render child"):
            render(sandbox, {"deploy/a.yaml": yaml}, by)
