"""Translates the API server's refusal of a Secret into known mistakes in our words. Pure.

Law: only text that a literal table here lists is repeated: the server, admission policies and webhooks quote values and keys of `data`.
A mistake in no table is reduced to its reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
_KEYS = (
    *("tls.crt", "tls.key", "username", "password", "ssh-privatekey", ".dockercfg", ".dockerconfigjson"),
    *("kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"),
)
"""Keys that types of Secrets require; they reveal nothing of this one."""
_PATH = re.compile(r"(\w*)(?:\.(\w+))?(?:\[(.*)\]|\..*)?", re.DOTALL)
_TYPED = re.compile(
    r"(?:: |\n *)\.(\S[^\n]*?): (field not declared in schema|duplicate entries|expected (?:string|map|list|boolean|numeric))\b"
)
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
    """Return the message of a refused Secret. `status`: the server's; `causes`: of its details; `code`: HTTP's."""
    text = str(status.get("message") or "")
    reason = str(status.get("reason") or "")
    told = [reason if re.fullmatch(r"[A-Za-z]+", reason) else str(code)]
    denied = next(((found, words) for pattern, words in _ADMISSION if (found := pattern.match(text))), None)
    if denied:
        told.append(f"{denied[0][1]} {denied[0][2]} {denied[1]}")
    else:
        told += dict.fromkeys([*map(_cause, causes), *_body(text)])
    return f"{', '.join(filter(None, told))} {_LEFT_OUT}"


def _cause(cause: Mapping[str, Any]) -> str:
    """Return the mistake of one cause, its field last."""
    message = str(cause.get("message") or "")
    mistake = _REASONS.get(str(cause.get("reason")), "")
    detail = next((words for pattern, words in _CAUSES if pattern.search(message)), "")
    field = _shown(str(cause.get("field") or ""))
    words = f"{mistake} {detail}".strip().removesuffix(":")
    return f"{words} (field {field})" if field else words


def _body(text: str) -> Iterator[str]:
    for path, mistake in sorted(_TYPED.findall(text)):
        yield f"{mistake} (field {_shown(path)})"
    yield from (words for pattern, words in _BODY if pattern.search(text))


def _shown(path: str) -> str:
    """Return a path of a field with … for each part that isn't one of a Secret's own."""
    found = _PATH.fullmatch(path)
    first, second, key = found.groups() if found else ("", None, None)
    if not path or first not in _FIELDS:
        return "…" if path else ""
    parts = first
    if first == "metadata" and second:
        parts += f".{second}" if second in _METADATA else ".…"
    elif second or (key is None and path != first):
        return f"{first}.…"
    if key is not None:
        parts += f"[{key}]" if key in _KEYS else "[…]"
    return parts
