"""Keeping secrets out of what is stored and shown: errors quote requests, and requests carry keys.

An SDK's exception holds the request with its ``Authorization`` header, and providers echo parts of
a key in their messages. So an exception is kept as text alone, and that text is searched for keys.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterable
from types import TracebackType

from ragdiag.tables import storable_text

__all__ = ["describe_error", "is_secret_name", "redact", "trace"]

#: What stands where a secret was.
REDACTED = "[redacted]"

#: Messages are kept up to this many characters, tracebacks up to this many frames.
MAX_MESSAGE = 2000
MAX_FRAMES = 20

#: Values of environment variables of these names are secrets, if they are of any length.
_SECRET_NAME = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)", re.IGNORECASE)
_MIN_SECRET = 8

_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<keep>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}",
        r"(?P<keep>://[^\s/:@]{0,200}:)[^\s/@]{1,500}(?=@)",
        r"(?P<keep>\b(?:x-)?(?:api[_-]?key|authorization|access[_-]?token|secret|password)"
        r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?)(?!bearer\b|basic\b)[^\s\"',;&}]{4,}",
        r"(?P<keep>)\bsk-[A-Za-z0-9_*\-]{6,}",
        r"(?P<keep>)\bAIza[A-Za-z0-9_\-]{20,}",
        r"(?P<keep>)\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
        r"(?P<keep>)\b(?:gh[pousr]_|hf_|xox[abprs]-|gsk_)[A-Za-z0-9\-]{10,}",
        r"(?P<keep>)\beyJ[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]*",
    )
)


def is_secret_name(name: str) -> bool:
    """Whether a variable of this name is likely to hold a key, token or password."""
    return _SECRET_NAME.search(name) is not None


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` without keys, tokens and passwords.

    Parameters
    ----------
    text : str
        Anything that may quote a request.
    secrets : iterable of str
        Known secrets; those in the environment are looked up.

    Examples
    --------
    >>> redact("401 from https://me:hunter22@host: Bearer abcdef123456, key sk-proj-12345678")
    '401 from https://me:[redacted]@host: Bearer [redacted], key [redacted]'
    """
    known = [secret for secret in secrets if len(secret) >= _MIN_SECRET]
    known += [
        value
        for name, value in os.environ.items()
        if len(value) >= _MIN_SECRET and is_secret_name(name)
    ]
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<keep>{REDACTED}", text)
    return text


def describe_error(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Return ``TYPE: MESSAGE`` of an exception, fit to be stored.

    Examples
    --------
    >>> describe_error(ValueError("no index"))
    'ValueError: no index'
    """
    try:
        message = str(error)
    except Exception as problem:  # a user's exception may fail to show itself
        message = f"(its message raises {type(problem).__name__})"
    name = type(error).__name__
    text = redact(storable_text(f"{name}: {message}" if message else name), secrets)
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


def trace(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """Return the traceback of an exception as text, from the user's frames on."""
    frames = error.__traceback__
    # The first frames are the harness's own.
    while frames is not None and frames.tb_next is not None and _is_ours(frames):
        frames = frames.tb_next
    try:
        lines = traceback.format_exception(type(error), error, frames, limit=-MAX_FRAMES)
    except Exception:
        lines = traceback.format_tb(frames, limit=-MAX_FRAMES)
    return redact(storable_text("".join(lines)), secrets)


def _is_ours(frame: TracebackType) -> bool:
    return os.path.dirname(frame.tb_frame.f_code.co_filename) == os.path.dirname(__file__)
