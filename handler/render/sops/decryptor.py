"""Decrypts files for one target: in batches, with as few processes as the work allows. In the worker.

Law: a file is refused before anything is unwrapped unless the target lists a key of it. Plain bytes stay in memory: what was decrypted last
is kept for the next render by its blob and by the keys that opened it, and goes as soon as a render doesn't need it.
"""

from __future__ import annotations

import base64
import contextvars
import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from handler.config.decryption import SOPS, Decryption
from handler.model.deadline import LEAST, left
from handler.model.errors import AnnealError, DecryptionRefused, ManifestInvalid, Problem, RenderFailed, Stopping
from handler.model.tree import MAX_PATH, printable
from handler.render.frames import decode_problem
from handler.render.programs.program import Program, ProgramLimits
from handler.render.render_tools import RenderTool, find
from handler.render.sandbox import Sandbox
from handler.render.sops.data_keys import SIZE, OneTimeKey
from handler.render.sops.encrypted_file import EncryptedFile, Unit
from handler.render.sops.placeholders import decode_placeholders
from handler.render.sops.plain_file import decode_plain
from handler.render.sops.sops_metadata import KmsKey, MetadataRefused, SopsMetadata, allowing, refusal


class DecryptionKeys(Protocol):
    """The keys of one target, asked for at each render. Nothing of git chooses one."""

    def age(self) -> tuple[str, ...]:
        """Return the texts of its age secrets, as they are now. Raises SecretUnavailable."""

    def kms(self, arn: str, wrapped: bytes, context: Mapping[str, str], place: str) -> bytes:
        """Unwrap a data key by a listed KMS key, under the handler's own identity. `place`: the file, for errors. Raises AnnealError."""


TOOL = SOPS
LIMITS = ProgramLimits(memory=512 << 20, cpu=20, seconds=30.0, output=64 << 20, file=1 << 20, space=64 << 20, entries=1000)
_AT_ONCE = 2
_KEPT = 32 << 20
"""Bytes of plain files that are kept from one render to the next."""
Blob = tuple[str, str]
"""A file's blob id, and its name as far as that says what it holds."""


@dataclass(frozen=True, slots=True)
class PlainFile:
    """`place`: its path; `left_out`: objects that no placeholder can stand for."""

    data: bytes = field(repr=False)
    place: str = ""
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be encrypted. `place`: its path."""

    place: str
    data: bytes = field(repr=False)

    @property
    def shown(self) -> str:
        """The path as messages have it."""
        return printable(self.place, MAX_PATH)


Units = Sequence[tuple[Candidate, str, Unit]]
"""What sops decrypts, each with its file and that one's form."""


class Decryptor:
    """Decrypts for one target. Safe to share between threads."""

    def __init__(self, target: str, settings: Decryption, keys: DecryptionKeys | None, placeholders: int = 1) -> None:
        """Ask no key before the first encrypted file.

        `keys`: None: none is asked, and placeholders of this set stand for values (`RenderRequest`).
        """
        self.keys = keys
        self._placeholders = placeholders
        self._target = target
        self._settings = settings
        self._lock = threading.Lock()
        self._kept: dict[tuple[Blob, str], PlainFile] = {}

    def standing_in(self, number: int) -> Decryptor:
        """Return what has placeholders of a set stand for the values of the same files, and asks no key."""
        return Decryptor(self._target, self._settings, None, number)

    def decrypt(self, candidates: Mapping[Blob, Candidate], sandbox: Sandbox, *, weak: bool) -> dict[Blob, PlainFile]:
        """Return what encrypted files hold, those that aren't encrypted left out.

        Raises DecryptionRefused: no key of a file is listed; ManifestInvalid: its metadata can't be used, or its MAC is another; and what
        keeps keys, KMS or sops from being asked.
        """
        keys = self.keys
        if keys is None:
            return _stood_in(self._seen(candidates, sandbox), sandbox, self._placeholders)
        secrets = keys.age() if candidates else ()
        opened_by = self._opened_by(secrets)
        with self._lock:
            known = {blob: self._kept[blob, opened_by] for blob in candidates if (blob, opened_by) in self._kept}
        found = self._seen({blob: each for blob, each in candidates.items() if blob not in known}, sandbox)
        work: Units = [(candidate, file.form, unit) for candidate, file in found.values() for unit in file.units]
        data_keys = _Unwrapping(self._target, self._settings.kms, keys, secrets, sandbox).run(work) if work else []
        made = iter(_Decrypting(find(TOOL), sandbox, weak, self._settings.mac == "verify").run(work, data_keys) if work else ())
        fresh = {blob: _whole(candidate, file, [next(made) for _ in file.units]) for blob, (candidate, file) in found.items()}
        with self._lock:
            self._kept |= {(blob, opened_by): plain for blob, plain in fresh.items()}
            if sum(len(plain.data) for plain in self._kept.values()) > _KEPT:  # a render that fails doesn't call `keep`
                self._kept.clear()
        return {**known, **fresh}

    def keep(self, used: Mapping[Blob, PlainFile]) -> None:
        """Forget what a render didn't use; all of it where that is much."""
        few = sum(len(plain.data) for plain in used.values()) <= _KEPT
        with self._lock:
            self._kept = {key: plain for key, plain in self._kept.items() if few and key[0] in used}

    def _opened_by(self, secrets: Sequence[str]) -> str:
        """Return a digest of all that decides whether a file is opened: another key or setting decrypts anew."""
        parts = (*secrets, "", *self._settings.kms, self._settings.mac)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _seen(self, candidates: Mapping[Blob, Candidate], sandbox: Sandbox) -> dict[Blob, tuple[Candidate, EncryptedFile]]:
        """Let a child tell which candidates are encrypted, and for whom."""
        if not candidates:
            return {}
        blobs = sorted(candidates, key=lambda blob: candidates[blob].place)
        options = {"places": [candidates[blob].place for blob in blobs]}
        rows = sandbox.run(
            "encrypted files", options, [candidates[blob].data for blob in blobs], EncryptedFile.decode, subject="encrypted files"
        )
        _refuse([row for row in rows if isinstance(row, Problem)])
        found = {row[0]: row[1] for row in rows if isinstance(row, tuple) and 0 <= row[0] < len(blobs)}
        return {blobs[number]: (candidates[blobs[number]], file) for number, file in found.items()}


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise ManifestInvalid(*problems)


def _refuse_unanswered(subject: str, answered: bool) -> None:
    """Refuse what a child left out, as only one that was taken over does."""
    if not answered:
        raise RenderFailed.of(subject, "was not answered by the render child")


def _whole(candidate: Candidate, file: EncryptedFile, plain: Sequence[tuple[bytes, int]]) -> PlainFile:
    """Put a file together: what stands around its units, and they, each with how many objects it lacks."""
    parts = [file.texts[0].encode()]
    for text, (data, _) in zip(file.texts[1:], plain, strict=True):
        parts += [data, text.encode()]
    return PlainFile(b"".join(parts), candidate.shown, sum(left_out for _, left_out in plain))


def _stood_in(found: Mapping[Blob, tuple[Candidate, EncryptedFile]], sandbox: Sandbox, number: int) -> dict[Blob, PlainFile]:
    units = [[file.form, unit.pieces] for _, file in found.values() for unit in file.units]
    options = {"units": units, "set": number}
    rows = sandbox.run("placeholders", options, [], decode_placeholders, subject="encrypted files") if units else []
    _refuse_unanswered("placeholders", len(rows) == len(units))
    made = iter([(data, count) for count, data in rows])
    return {blob: _whole(candidate, file, [next(made) for _ in file.units]) for blob, (candidate, file) in found.items()}


@dataclass(frozen=True, slots=True)
class _Unwrapping:
    """Unwraps the data keys of one batch."""

    target: str
    arns: Sequence[str]
    keys: DecryptionKeys
    secrets: Sequence[str] = field(repr=False)
    sandbox: Sandbox = field(repr=False)

    def run(self, work: Units) -> list[bytes]:
        """Return the data key of each unit. Raises DecryptionRefused: of one, none of its keys is listed."""
        opened, ours = self._by_age(work)
        refused = [
            self._unlisted(candidate, unit.metadata, ours)
            for (candidate, _, unit), key in zip(work, opened, strict=True)
            if not key and not self._listed(unit.metadata)
        ]
        if refused:
            raise DecryptionRefused(*dict.fromkeys(refused))
        return [key or self._by_kms(candidate, unit.metadata) for (candidate, _, unit), key in zip(work, opened, strict=True)]

    def _by_age(self, work: Units) -> tuple[list[bytes], str]:
        """Return the keys that age keys open, empty ones for the rest, and the recipients of the age keys."""
        if not self.secrets:
            return [b""] * len(work), ""
        parts = [text.encode() for text in self.secrets]
        numbers: dict[str, int] = {}
        tries = [[numbers.setdefault(wrapped, len(parts) + len(numbers)) for _, wrapped in unit.metadata.age] for _, _, unit in work]
        parts += [wrapped.encode() for wrapped in numbers]
        options = {"secrets": len(self.secrets), "tries": tries}
        rows = self.sandbox.run("data keys", options, parts, bytes, subject="data keys")
        _refuse_unanswered("data keys", len(rows) == len(work) + 1)
        return [row if len(row) == SIZE else b"" for row in rows[:-1]], rows[-1].decode(errors="replace")

    def _listed(self, metadata: SopsMetadata) -> list[KmsKey]:
        return [key for key in metadata.kms if key.arn in self.arns]

    def _by_kms(self, candidate: Candidate, metadata: SopsMetadata) -> bytes:
        """Ask the listed KMS keys one after the other. Raises what the last one said."""
        failed: AnnealError | None = None
        for key in self._listed(metadata):
            try:
                found = self.keys.kms(key.arn, base64.b64decode(key.wrapped, validate=True), key.context, candidate.shown)
            except ValueError:
                failed = ManifestInvalid.of(candidate.shown, f"has a data key for {key.arn} that is no base64")
            except AnnealError as error:
                failed = error
            else:
                if len(found) == SIZE:
                    return found
                failed = ManifestInvalid.of(candidate.shown, f"has a data key for {key.arn} that has another size than {SIZE} bytes")
        raise failed or AssertionError("a listed key was found before")

    def _unlisted(self, candidate: Candidate, metadata: SopsMetadata, ours: str) -> Problem:
        listed = ", ".join(filter(None, (*ours.split("\n"), *self.arns)))
        listed = listed or ("age secrets without a key that can be read" if self.secrets else "none")
        seen = f"is encrypted by SOPS for {', '.join(metadata.recipients)}; target {self.target} lists {listed}"
        return Problem(candidate.shown, seen, fix=allowing(metadata, self.target))


@dataclass(frozen=True, slots=True)
class _Decrypting:
    """Runs sops, for each unit once."""

    tool: RenderTool
    sandbox: Sandbox
    weak: bool
    verify: bool

    def run(self, work: Units, data_keys: Sequence[bytes]) -> list[tuple[bytes, int]]:
        """Return what the units hold, in their order. Raises ManifestInvalid with all that sops refuses."""
        contexts = [contextvars.copy_context() for _ in work]  # the deadline is this thread's
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            calls = [
                pool.submit(context.run, self._one, candidate, form, unit, key)
                for context, (candidate, form, unit), key in zip(contexts, work, data_keys, strict=True)
            ]
            try:
                rows = [call.result() for call in calls]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)  # the rest would be decrypted for nothing
                raise
        _refuse([row for row in rows if isinstance(row, Problem)])
        return [(row, 0) for row in rows if isinstance(row, bytes)]

    def _one(self, candidate: Candidate, form: str, unit: Unit, data_key: bytes) -> bytes | Problem:
        if left(LIMITS.seconds) <= LEAST:
            raise Stopping.of(candidate.shown, "isn't decrypted, for no time is left; the next run goes on")
        key = OneTimeKey.holding(data_key)
        try:
            encrypted = "".join(_put(unit, unit.metadata.rewritten(key.recipient, key.wrapped, form)))
        except MetadataRefused as refused:
            return refusal(candidate.place, refused)
        arguments = ("--disable-version-check", "decrypt", "--input-type", form, "--output-type", form)
        program = Program(
            self.tool.path,
            (*arguments, *(() if self.verify else ("--ignore-mac",)), "file"),
            {"file": 0},
            limits=LIMITS,
            environment={"SOPS_AGE_KEY": key.secret},
        )
        subject, parts = candidate.shown, [encrypted.encode()]
        rows = self.sandbox.run(TOOL, {"place": candidate.place}, parts, _decode, subject=subject, program=program, weak=self.weak)
        _refuse_unanswered(subject, len(rows) == 1)
        return rows[0]


def _put(unit: Unit, metadata: str) -> Iterator[str]:
    """Yield a unit's text with other metadata: in YAML at each of its documents."""
    first, *rest = unit.pieces
    yield first
    for piece in rest:
        yield metadata
        yield piece


def _decode(frame: bytes) -> bytes | Problem:
    return decode_problem(frame) if frame[:1] == b"P" else decode_plain(frame)
