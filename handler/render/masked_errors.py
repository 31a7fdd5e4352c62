"""What a render's errors and notes may show: renderers quote what they read, and some of it is a secret.

Law: it loads nothing that decrypts, for each renderer may use it, and the child of a sandbox has no such library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from handler.config.secret_mask import Mask, Opening
from handler.model.errors import AnnealError


def masking(secrets: tuple[str, ...]) -> Callable[[str], str]:
    """Return what hides these texts and their parts."""
    opening = Opening()
    return Mask.of([*secrets, *(part for text in secrets for part in opening.parts(text))])


def hidden(error: AnnealError, mask: Callable[[str], str]) -> AnnealError:
    """Mask what an error's problems say: renderers quote what they read."""
    error.problems = tuple(
        replace(each, subject=mask(each.subject), message=mask(each.message), fix=mask(each.fix)) for each in error.problems
    )
    error.args = error.problems
    return error
