"""Cuts sensitive values out of the API server's messages; the rest stays, so that the author can act. Pure.

    spec.apiKey: Invalid value: "hunter2": …                                         a field error: `spec.apiKey: Invalid value: ***: …`
    .env[name="DB_PASSWORD"].value: expected string, got &value…{Value:8642}         a typed patch: `… got ***`
    spec.template: Invalid value: {"Spec":{… "DB_PASSWORD" …}}: field is immutable   a dump that names such a field, whole
    -     "Value": "old",                                                            a diff that does, but for `Name`
    admission … denied the request: hunter2 is weak                                  and the sent object's own sensitive values anywhere
    Invalid value: "postgres://shop:hunter2@db/shop"                                 and the password of any URL

Law: a path is judged by the one rule of `handler.model.field_masking`, and by where the sent object has sensitive fields: the server
counts the items of lists in an order of its own, so one such item makes all of its list's.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.model.field_masking import MASKED, is_sensitive, mentions_secret, sensitive, without_given, without_passwords
from handler.model.names import GroupKind

_ANY = GroupKind("", "")  # any kind but Secret: messages about a Secret aren't quoted (`about_a_secret`)
_PATH = r"(?:[^\s\[\]:,\"]|\[[^\]]{0,500}\])+"
_FIELD_ERROR = re.compile(rf"(?:(?<=[\s\[])|^)({_PATH}): (?:Invalid value|Unsupported value|Duplicate value|Not found): ")
_TYPED = re.compile(rf"(?<=\s)(\.{_PATH}): (expected [^\n]*?, got )(&.*?)(?=\n  \.|\Z)", re.DOTALL)
_KEYED = re.compile(r'(?<![\w.-])([\w.-]{1,200})="(?:\\.|[^"\\])*"')  # a key of a list's item, or free text of that form
_DIFF = "\n@@ "
_DIFF_VALUE = re.compile(r'^([ +-]\s*(?:"(?!Name")[^"]*": )?)(?:"(?:\\.|[^"\\])*"|-?\d[\d.]*)(?=,?$)', re.MULTILINE)
_ITEM = re.compile(r'\[(?:\d+|[^\]="]*="[^\]]*)\]')
_NAMED = re.compile(r'\[name="[^\]]*"\]\.value$')  # a path that names the item of its value
_KEY = re.compile(r"\[([^\]]*)\]")
_SCALAR = re.compile(r'"(?:\\.|[^"\\])*"|(?:null|true|false|-?\d[\w.+-]*)(?![\w"])')
_NO_VALUE = frozenset({"", "null", "object", "array", "string", "integer", "number", "boolean"})
"""Validation's words for an absent value or a type."""
_A_NAME = re.compile(r'(\bsecrets? "[a-z0-9.-]+" not found)')  # the server names a Secret that is missing; its name is no value


def without_values(text: str, sent: bytes | None) -> str:
    """Return the server's message about an object without the values of its sensitive fields. `sent`: the request's body, as JSON."""
    known = _Known.of(sent)
    said = _without_diff(_TYPED.sub(known.typed, known.field_errors(text)), known)
    said = _KEYED.sub(lambda found: f'{found[1]}="{MASKED}"' if is_sensitive(_ANY, found[1]) else found[0], said)
    parts = (part if number % 2 else without_given(part, known.values) for number, part in enumerate(_A_NAME.split(said)))
    return without_passwords("".join(parts))


@dataclass(frozen=True, slots=True)
class _Known:
    """The paths of the sent object's sensitive fields, and their values."""

    paths: frozenset[str]
    values: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, sent: bytes | None) -> _Known:
        body = _object_of(sent)
        found = [(path, value) for path, value in sensitive(_ANY, body) if not isinstance(value, bool)]
        names = set(_keys(body))  # masking a value that is called like a field would hide that field's name
        values = tuple(str(value) for path, value in found if str(value) not in names and str(value) not in path)
        return cls(frozenset(path for path, _ in found), values)

    def field_errors(self, text: str) -> str:
        places = [*_FIELD_ERROR.finditer(text)]
        if not places:
            return text
        ends = [*(each.start() for each in places[1:]), len(text)]
        return text[: places[0].start()] + "".join(
            each[0] + self._valued(each[1], text[each.end() : end]) for each, end in zip(places, ends, strict=True)
        )

    def typed(self, found: re.Match[str]) -> str:
        path, expected, value = found.groups()
        return f"{path}: {expected}{MASKED if self._is_hidden(path) or self._holds(path, value) else value}"

    def _valued(self, path: str, said: str) -> str:
        scalar = _SCALAR.match(said)
        if scalar is None:
            end = _end_of(said)
            dumped = said[:1] in "{[&" or re.match(r"[\w.*\[\]]+[{\[(]", said)
            return MASKED + said[end:] if self._is_hidden(path) or (dumped and self._holds(path, said[:end])) else said
        value, rest = scalar[0], said[scalar.end() :]
        if not self._is_hidden(path) or value.strip('"') in _NO_VALUE:
            return said
        return MASKED + re.sub(rf"(?<!\w){re.escape(_unquoted(value))}(?!\w)", MASKED, rest)

    def _is_hidden(self, path: str) -> bool:
        return is_sensitive(_ANY, path) or (_plain(path) in self.paths and not _NAMED.search(path))

    def _holds(self, path: str, value: str) -> bool:
        above = f"{_plain(path)}."
        return mentions_secret(value) or any(each.startswith(above) for each in self.paths)


def _without_diff(text: str, known: _Known) -> str:
    said, mark, diff = text.partition(_DIFF)
    return said + mark + (_DIFF_VALUE.sub(rf"\1{MASKED}", diff) if known.paths or mentions_secret(diff) else diff)


def _plain(path: str) -> str:
    """Return a path as `sensitive` writes it: `data.KEY`, without places of list items."""
    return _KEY.sub(r".\1", _ITEM.sub("", path)).removeprefix(".")


def _end_of(said: str) -> int:
    try:
        return json.JSONDecoder().raw_decode(said)[1]
    except (ValueError, RecursionError):
        pass
    depth, quoted, escaped = 0, False, False
    for at, char in enumerate(said):
        if quoted:
            escaped, quoted = char == "\\" and not escaped, char != '"' or escaped
        elif not depth and said[at : at + 2] in (": ", ", "):
            return at
        else:
            quoted, depth = char == '"', max(depth + (char in "{[(") - (char in "}])"), 0)
    return len(said)


def _unquoted(value: str) -> str:
    try:
        return str(json.loads(value)) if value.startswith('"') else value
    except ValueError:
        return value[1:-1]


def _object_of(sent: bytes | None) -> Any:
    try:
        body = json.loads(sent or b"null")
    except (ValueError, RecursionError):
        return None
    if isinstance(body, list):
        return {
            str(each["path"]).strip("/").replace("/", "."): each.get("value") for each in body if isinstance(each, dict) and "path" in each
        }
    return body


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(below)


_REASONS = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value:",
    "FieldValueTypeInvalid": "Invalid value:",
    "FieldValueTooLong": "Too long:",
    "FieldValueForbidden": "Forbidden:",
    "FieldValueNotSupported": "Unsupported value:",
    "FieldValueDuplicate": "Duplicate value:",
}
"""apimachinery's reason of a cause in `details.causes` -> the beginning of its text."""
_CAUSES = (
    (re.compile(r"field is immutable(?: when `immutable` is set)?$"), "field is immutable"),
    (re.compile(r"may not be more than 1048576 bytes$"), "the values may have 1048576 bytes together"),
    (re.compile(r": a valid config key must consist of [^\"]*$"), "a key may have letters, digits, '-', '_' and '.' only"),
    (re.compile(r": invalid character [^\"]* looking for beginning of value$"), "the value isn't JSON"),
    (re.compile(r"illegal base64 data at input byte \d+$"), "a value isn't base64; text goes into stringData"),
)
"""Ends of messages, which no quoted value reaches -> our words."""
_FIELDS = ("apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData")
_METADATA = ("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "uid", "resourceVersion")
_OWN, _ALIKE, _UNDECLARED = ("data", "stringData", "type", "immutable"), 0.8, "field not declared in schema"
_SECRET_KEYS = (
    *("tls.crt", "tls.key", "username", "password", "ssh-privatekey", ".dockercfg", ".dockerconfigjson"),
    *("kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"),
)
"""Keys that types of Secrets require; they reveal nothing of this one."""
_SECRET_PATH = re.compile(r"(\w*)(?:\.(\w+))?(?:\[(.*)\]|\..*)?", re.DOTALL)
_SECRET_TYPED = re.compile(rf"(?:: |\n *)\.(\S[^\n]*?): ({_UNDECLARED}|duplicate entries|expected (?:string|map|list|boolean|numeric))\b")
_BODY = (
    (re.compile(r"illegal base64 data at input byte \d+$"), "a value of data isn't base64; text goes into stringData"),
    (re.compile(r"cannot unmarshal \w+ into Go struct field [\w.]+ of type \S+$"), "a field has another type than it is declared with"),
    (re.compile(r'unknown field "'), "unknown field"),
    (re.compile(r'duplicate field "'), "duplicate field"),
)
"""Messages about a whole body, without causes."""
_ADMISSION = (
    (
        re.compile(r"secrets \"[^\"]*\" is forbidden: (\w+AdmissionPolicy) '([a-z0-9.-]+)' with binding '[a-z0-9.-]+' denied request"),
        "denied request",
    ),
    (re.compile(r'(admission webhook) "([a-z0-9.-]+)" denied the request'), "denied the request"),
)
_LEFT_OUT = "(the server's text is left out: it may quote values; kubectl apply --server-side --dry-run=server -f FILE shows it)"


def about_a_secret(status: Mapping[str, Any], causes: Iterable[Mapping[str, Any]], code: int) -> str:
    """Return the message of a refused Secret, of literals of the tables here alone: servers and webhooks quote its values and keys."""
    text = str(status.get("message") or "")
    reason = str(status.get("reason") or "")
    parts = [reason if re.fullmatch(r"[A-Za-z]+", reason) else str(code)]
    denied = next(((found, words) for pattern, words in _ADMISSION if (found := pattern.match(text))), None)
    if denied:
        parts.append(f"{denied[0][1]} {denied[0][2]} {denied[1]}")
    else:
        parts += dict.fromkeys([*map(_cause, causes), *_body(text)])
    return f"{', '.join(filter(None, parts))} {_LEFT_OUT}"


def _cause(cause: Mapping[str, Any]) -> str:
    message = str(cause.get("message") or "")
    mistake = _REASONS.get(str(cause.get("reason")), "")
    detail = next((words for pattern, words in _CAUSES if pattern.search(message)), "")
    field = _shown(str(cause.get("field") or ""))
    words = f"{mistake} {detail}".strip().removesuffix(":")
    return f"{words} (field {field})" if field else words


def _body(text: str) -> Iterator[str]:
    for path, mistake in sorted(_SECRET_TYPED.findall(text)):
        yield f"{mistake} (field {_shown(path)}){_meant(path) if mistake == _UNDECLARED else ''}"
    yield from (words for pattern, words in _BODY if pattern.search(text))


def _meant(path: str) -> str:
    """Say which field an unknown one may be meant as, which isn't named: a word that stands in a wrong place may be a value."""
    first, _, below = path.partition(".")
    known = {name.lower(): name for name in (_METADATA if first == "metadata" and below else _FIELDS)}
    near = difflib.get_close_matches((below or first).lower(), known, 1, _ALIKE)
    here = f"metadata.{known[near[0]]}" if near and below else known[near[0]] if near else ""
    return f": did you mean {here}?" if near else "" if below else f": a Secret has {', '.join(_OWN)}"


def _shown(path: str) -> str:
    """Return a path with … for each part that isn't a Secret's own field."""
    found = _SECRET_PATH.fullmatch(path)
    first, second, key = found.groups() if found else ("", None, None)
    if not path or first not in _FIELDS:
        return "…" if path else ""
    parts = first
    if first == "metadata" and second:
        parts += f".{second}" if second in _METADATA else ".…"
    elif second or (key is None and path != first):
        return f"{first}.…"
    if key is not None:
        parts += f"[{key}]" if key in _SECRET_KEYS else "[…]"
    return parts
