"""What of the API server's refusal of an object may be quoted where people read it who may not read the cluster. Pure.

    spec.replicas: Invalid value: -1: must be greater than or equal to 0     a field error: path, value, words, each only where it may
    .spec.replica: field not declared in schema                              a body that doesn't fit its schema, before it meets what lives

Law: only what is known to speak of what git declares is quoted. A path is shown as far as git declares it, a value where it is git's own,
words where they are validation's fixed ones (`_WORDS`). Admission, quotas, limits, what is allocated already or missing, and words that
aren't known speak of the cluster, or may: of those nothing is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from handler.model import quotation
from handler.model.errors import AccessDenied, ApiRefused, FieldCause
from handler.model.field_masking import MASKED
from handler.model.hidden_fields import without
from handler.model.manifest import Manifest, canonical
from handler.plan.declared_fields import DeclaredField, DeclaredFields

_INVALID = re.compile(r'\S+ "[^"\n]*" is invalid: ')
"""How validation begins; admission says `is forbidden` or `denied the request`, also with status and causes of its own choice."""
_TYPED = re.compile(r"failed to create typed patch object \([^\n)]*\): (?:errors:\n +)?(?P<said>\.[^\n]+)")
_DECODED = re.compile(
    r'[\w.]+ in version "[^"\n]*" cannot be handled as a \w+: '
    r"(?P<said>strict decoding error: (?:(?:, )?(?:unknown|duplicate) field \"[^\"\n]{1,200}\")+"
    r"|json: cannot unmarshal (?:string|number|object|array|bool) into Go struct field [\w.]+ of type [\w.\[\]*]+)"
)
_TYPE = r'"?(?:string|integer|number|boolean|object|array|null)"?'
_CHARACTERS = (
    r"(?:an? |name part |prefix part )[\w ().-]*must (?:be an empty string or )?consist of "
    r"[^\"@]*regex used for validation is '[^\" ]*'\)"
)
_WORDS = tuple(
    re.compile(rf"(?:^|: ){'(?:[^ :]+ )?' if each.startswith('in body') else ''}(?P<said>{each})$")
    for each in (
        r"field is immutable(?: when `immutable` is set)?",
        r"(?:may not (?:be changed|change) once set|may not be unset|cannot change roleRef)",
        r"(?:pod updates may not change|updates to \w+ spec for) fields other than [\w\s.,`'*()\[\]]+",
        r"spec is immutable after creation except [\w\s.,]+",
        r"must be (?:greater|less) than (?:or equal to )?(?:zero|-?\d{1,10}|`\w+`)",
        r"must be between -?\d{1,10} and -?\d{1,10}(?:, inclusive)?",
        r"must be (?:non-negative|unique|specified|an absolute path|a relative path|a valid [\w ]+(?:, \(e\.g\. [^)\"]*\))?)",
        r"must not (?:be empty|contain '\.\.'|have leading 0s)",
        r"(?:must be no more than|must be at least|may not be more than|must have at (?:most|least)) \d{1,10} (?:bytes|characters|items)",
        _CHARACTERS,
        r"(?:`selector` does not match template `labels`|empty selector is invalid for \w+|invalid label selector)",
        r"supported values: \"[^\"\n]*\"(?:, \"[^\"\n]*\")*",
        r"quantities must match the regular expression '[^'\n]*'",
        rf"in body must be of type {_TYPE}: {_TYPE}",
        r"in body should be (?:greater|less) than (?:or equal to )?-?[\d.e+]{1,20}",
        r"in body should (?:match '[^'\n]*'|be at (?:most|least) \d+ chars long|have at (?:most|least) \d+ items)",
    )
)
"""Fixed words of validation and schemas, at the end of a message."""
_KINDS = {
    "FieldValueRequired": "Required value",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueNotFound": "Not found",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueTooLong": "Too long",
    "FieldValueTooShort": "Too short",
    "FieldValueTooMany": "Too many",
    "FieldValueTooFew": "Too few",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueForbidden": "Forbidden",
}
"""apimachinery's reason of a cause -> the beginning of its text; what isn't in here is never quoted."""
_SAY_NOTHING_ALONE = frozenset({"Invalid value", "Forbidden"})  # any validation may say so, also of what is allocated elsewhere
_REQUIRED = re.compile(r"\.?\w+")  # after what is declared: a field's own name
_END = 1_000
"""Characters at the end of a message that words are looked for in."""


@dataclass(frozen=True, slots=True)
class QuotedRefusal:
    """What may be said of a refusal. `is_whole`: it says nothing else."""

    words: tuple[str, ...] = ()
    is_whole: bool = False


_CODE = re.compile(r"[A-Z][A-Za-z]{0,63}")
_UNTOLD = (
    "the server's words aren't shown, for the object holds values that aren't in git: kubectl apply --server-side --dry-run=server -f FILE"
)


def told_refusal(error: ApiRefused | AccessDenied, manifest: Manifest | None) -> ApiRefused | AccessDenied:
    """Return a refusal as people read it: of an object that holds what isn't in git only what speaks of its other fields.

    `manifest`: what git declares of the object; None: it isn't known.
    """
    if manifest is None or not manifest.hidden or isinstance(error, AccessDenied):
        return error
    found = quoted(error, replace(manifest, raw=canonical(without(manifest)))).words
    code = error.reason if _CODE.fullmatch(error.reason) else str(error.status)
    words = "; ".join(map(quotation.quoted, found)) or f"{code}: {_UNTOLD}"
    return type(error)(replace(error.problems[0], message=words), status=error.status, reason=error.reason)


def quoted(error: ApiRefused | AccessDenied, manifest: Manifest) -> QuotedRefusal:
    """Return what of a refusal may be quoted. `manifest`: what git declares of the object."""
    said = error.words
    if not isinstance(error, ApiRefused):
        return QuotedRefusal()
    if error.status == 422 and _INVALID.match(said):
        declared = DeclaredFields(manifest.identity.group_kind, manifest.body())
        found = [_field_error(each, declared) for each in error.causes]
        return QuotedRefusal(tuple(dict.fromkeys(filter(None, found))), bool(found) and all(found))
    if manifest.hidden:  # that text is masked by what was sent, and where it is would tell a value
        return QuotedRefusal()
    of_body = {422: _TYPED.match(said), 400: _DECODED.fullmatch(said)}.get(error.status)
    return QuotedRefusal((of_body["said"],), is_whole=True) if of_body else QuotedRefusal()


def _field_error(cause: FieldCause, declared: DeclaredFields) -> str:
    """Write a field error with what of it may be quoted; empty: nothing."""
    kind, at = _KINDS.get(cause.reason, ""), declared.at(cause.field)
    message = cause.message.partition("\n")[0].partition("@@")[0].rstrip()
    words = next((found["said"] for each in _WORDS if (found := each.search(message[-_END:]))), "")
    if not kind or not message.startswith(kind) or (kind in _SAY_NOTHING_ALONE and not words):
        return ""
    path = cause.field if kind == "Required value" and _REQUIRED.fullmatch(cause.field, at.known) else cause.field[: at.known]
    return ": ".join(filter(None, (path, kind, _value(message.removeprefix(f"{kind}: "), at), words))) if path else ""


def _value(rest: str, at: DeclaredField) -> str:
    """Return the value that an error quotes first, if it is what git declares there openly."""
    spelled = (at.text, f'"{at.text}"') if at.text and not at.is_nested and MASKED not in at.text else ()
    return next((each for each in spelled if rest == each or rest.startswith(f"{each}: ")), "")
