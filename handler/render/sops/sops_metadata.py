"""What SOPS wrote beside an encrypted file's values: for whom the data key is wrapped, and what decides which values are encrypted.

Law: fields are taken by name and type, within limits; what isn't known is dropped. Only `kept` and one key of ours reach sops.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from handler.model.advice import advice
from handler.model.errors import Problem
from handler.model.tree import MAX_PATH, printable

OPERATORS = "SopsSecret"
"""The kind whose operator decrypts it in the cluster."""
MAX_KEYS = 100
MAX_WRAPPED = 16 << 10
"""Characters of a wrapped data key: age takes about 400, KMS 250."""
_MAX_TEXT = 4096
_TEXTS = (
    *("lastmodified", "mac", "version", "unencrypted_suffix", "encrypted_suffix", "unencrypted_regex", "encrypted_regex"),
    *("unencrypted_comment_regex", "encrypted_comment_regex"),
)
_USED = re.compile(r"age1[^1]*\Z|ssh-")
"""Recipients whose private keys are used: age's own and OpenSSH's; neither post-quantum keys (age1pq1…) nor those of plugins."""
_MAC_ONLY_ENCRYPTED = "mac_only_encrypted"
_OTHERS = {
    "pgp": ("PGP", ("fp",)),
    "gcp_kms": ("Google Cloud KMS", ("resource_id",)),
    "azure_kv": ("Azure Key Vault", ("vault_url", "name")),
    "hc_vault": ("Vault", ("vault_address", "key_name")),
    "hckms": ("Huawei Cloud KMS", ("key_id",)),
}
"""Keys that are never used: how people call them, and the fields that name one."""


class MetadataRefused(Exception):
    """The metadata breaks a rule; the message says which."""


@dataclass(frozen=True, slots=True)
class KmsKey:
    """A data key as AWS KMS wraps it. `wrapped`: base64."""

    arn: str
    wrapped: str
    context: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SopsMetadata:
    """`kept`: what sops needs of it; `age`: (recipient, armored data key); `others`: keys that are never used, as people call them."""

    kept: Mapping[str, Any]
    age: tuple[tuple[str, str], ...] = ()
    kms: tuple[KmsKey, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def recipients(self) -> tuple[str, ...]:
        """All keys that the file is encrypted for, as messages name them."""
        return (*(printable(each, 120) for each, _ in self.age), *(printable(each.arn, 200) for each in self.kms), *self.others)

    @classmethod
    def read(cls, value: object) -> Self:
        """Read the mapping that a file holds. Raises MetadataRefused."""
        if not isinstance(value, dict):
            raise MetadataRefused("its `sops` is no mapping")
        if value.get("key_groups") or str(value.get("shamir_threshold") or "0") != "0":
            raise MetadataRefused("its data key is split among key groups (shamir_threshold), which isn't supported")
        kept: dict[str, Any] = {name: _text(value, name) for name in _TEXTS if value.get(name) not in (None, "")}
        if not {"mac", "version", "lastmodified"} <= kept.keys():
            raise MetadataRefused("its metadata lacks mac, version or lastmodified: it is cut off, or was edited by hand")
        if str(value.get(_MAC_ONLY_ENCRYPTED)).lower() == "true":
            kept[_MAC_ONLY_ENCRYPTED] = True
        age = tuple((_text(each, "recipient"), _text(each, "enc", MAX_WRAPPED)) for each in _keys(value, "age"))
        found = [_kms(each) for each in _keys(value, "kms")]
        others = [*(each for each in found if isinstance(each, str)), *_other_keys(value)]
        kms = tuple(each for each in found if isinstance(each, KmsKey))
        if len(age) + len(kms) + len(others) == 0:
            raise MetadataRefused("it names no key that it is encrypted for")
        return cls(kept, age, kms, tuple(others))

    def encode(self) -> Any:
        """Write it for the pipe."""
        return [dict(self.kept), list(self.age), [[each.arn, each.wrapped, dict(each.context)] for each in self.kms], list(self.others)]

    @classmethod
    def decode(cls, facts: Any) -> Self:
        """Read it again, as strictly as a file's. Raises ValueError."""
        try:
            kept, age, kms, others = facts
            keys = {"age": [{"recipient": each, "enc": wrapped} for each, wrapped in age]}
            keys["kms"] = [{"arn": arn, "enc": wrapped, "context": context} for arn, wrapped, context in kms]
            blank = {"pgp": [{"fp": "-"}]} if others else {}
            read = cls.read({**kept, **keys, **blank})
            return cls(read.kept, read.age, read.kms, tuple(printable(str(each), 300) for each in others))
        except (MetadataRefused, TypeError, AttributeError) as refused:
            raise ValueError("no metadata") from refused

    def rewritten(self, recipient: str, wrapped: str, form: str) -> str:
        """Return the metadata with one age key in place of all, as text of that form of file."""
        whole = {"age": [{"recipient": recipient, "enc": wrapped}], **self.kept}
        if form not in FLAT:
            return json.dumps(whole) + ("\n" if form == "yaml" else "")
        prefix, equals = ("sops_", "=") if form == "dotenv" else ("", " = ")
        flat = {"age__list_0__map_recipient": recipient, "age__list_0__map_enc": wrapped.replace("\n", "\\n"), **self.kept}
        lines = (f"{prefix}{name}{equals}{_flat(value, form)}\n" for name, value in flat.items())
        return "".join(("\n[sops]\n" if form == "ini" else "", *lines))


def refusal(place: str, refused: MetadataRefused) -> Problem:
    """Return the problem of a file whose metadata breaks a rule."""
    fix = advice("encrypt the plain file anew, with the flags that it had: sops encrypt -i --age RECIPIENT {path}", place)
    return Problem(printable(place, MAX_PATH), f"is encrypted by SOPS, and {refused}", fix=fix)


def allowing(metadata: SopsMetadata, target: str = "") -> str:
    """Return what to write so that a target may decrypt a file."""
    of = f" of target {target}" if target else " of the target"
    ours = [printable(each, 120) for each, _ in metadata.age if _USED.match(each)]
    if ours:
        who = ours[0]
        return f"add the private key of {who} to a secret{of}: decryption: {{age: [{{file: /etc/anneal/age.txt}}]}}"
    if metadata.kms:
        return advice("list it for the target: decryption: {yaml}", {"kms": [metadata.kms[0].arn]})
    return "encrypt it for an age key, too: sops rotate -i --add-age age1… FILE; keys of other kinds are never used"


_HALF = re.compile("[\ud800-\udfff]")
FLAT = ("dotenv", "ini")
"""The forms of files whose metadata are lines."""


def _flat(value: object, form: str) -> str:
    """Write a value in one line; what would end it early in an INI file is quoted as go-ini does."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if "\n" in text or "\r" in text:
        raise MetadataRefused("a text of its metadata has more than one line")
    quote = '"""' if "`" in text else "`" if any(mark in text for mark in "#;") else '"' if text != text.strip() else ""
    return f"{quote}{text}{quote}" if form == "ini" else text


def _keys(value: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    found = value.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise MetadataRefused(f"its {name} is no list of keys")
    if len(found) > MAX_KEYS:
        raise MetadataRefused(f"it has more than {MAX_KEYS} keys in {name}")
    return found


def _text(of: Mapping[str, Any], name: str, longest: int = _MAX_TEXT) -> str:
    found = of.get(name)
    if not isinstance(found, str) or not found:
        raise MetadataRefused(f"its metadata has no text in {name}")
    if len(found) > longest:
        raise MetadataRefused(f"its metadata has {len(found):,} characters in {name}; at most {longest:,} are read")
    if _HALF.search(found):
        raise MetadataRefused(f"its metadata has half a character in {name}")
    return found


def _kms(key: Mapping[str, Any]) -> KmsKey | str:
    """Return a key of AWS KMS; one that would choose a credential is only named."""
    arn = _text(key, "arn")
    chosen = [name for name in ("role", "aws_profile", "endpoint") if key.get(name)]
    if chosen:
        return f"{printable(arn, 200)} by a {chosen[0]} that the file chooses"
    context = key.get("context") or {}
    if not isinstance(context, dict) or len(context) > MAX_KEYS or not all(isinstance(each, str) for each in context.values()):
        raise MetadataRefused("the encryption context of a key in its kms is no mapping of texts")
    return KmsKey(arn, _text(key, "enc", MAX_WRAPPED), {name: _text(context, name) for name in context})


def _other_keys(value: Mapping[str, Any]) -> Iterator[str]:
    for kind, (called, fields) in _OTHERS.items():
        for key in _keys(value, kind):
            named = " ".join(str(key.get(name) or "") for name in fields).strip()
            yield f"{called} {printable(named, 200)}".strip()


def unflattened(flat: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata whose paths are keys, as dotenv and INI files have it. Raises MetadataRefused."""
    whole: dict[str, Any] = {}
    for path, text in flat.items():
        *way, last = path.replace("__list_", "__map_").split("__map_")
        if len(way) > 4 or "" in (*way, last):
            raise MetadataRefused("a key of its metadata is no path")
        node: Any = whole
        for step in way:
            node = node.setdefault(step, {}) if isinstance(node, dict) else None
        if not isinstance(node, dict) or last in node:
            raise MetadataRefused("a key of its metadata stands for two things")
        node[last] = text
    return {name: _listed(found) if name in ("age", "kms", "key_groups", *_OTHERS) else found for name, found in whole.items()}


def _listed(found: object) -> object:
    """Return the items of a list by their numbers, whatever these are: order means nothing among keys."""
    return list(found.values()) if isinstance(found, dict) else found
