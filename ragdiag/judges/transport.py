"""Sending a request to a provider: when to try again, how long to wait, and for whom.

One gate serves all workers of a judge. When the provider asks for a pause, all of them pause:
otherwise each would run into the same wall. What would fail in the same way again is not repeated.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Generic, NamedTuple, TypeVar

from ragdiag.errors import (
    JudgeAuthenticationError,
    JudgeError,
    JudgeParseError,
    JudgeProviderError,
)

__all__ = [
    "Failure",
    "Gate",
    "Truncated",
    "not_the_protocol",
    "of_sdk",
    "of_status",
    "retry_after",
    "send",
    "timed_out",
    "unreachable",
]

T = TypeVar("T")

#: A pause is doubled with every attempt up to this, seconds, and shortened by chance up to a share.
MAX_BACKOFF = 8.0
JITTER = 0.25
#: A provider that asks for a longer pause will not answer within this run.
MAX_RETRY_AFTER = 120.0

TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
QUOTA_WORDS = ("insufficient_quota", "exceeded your current quota", "billing", "credit balance")
OVERFLOW_WORDS = (
    "context length",
    "context_length",
    "context size",
    "context window",
    "maximum context",
    "exceed_context",
    "too many tokens",
    "prompt is too long",
    "token count exceeds",
)


class Truncated(JudgeParseError):
    """The reply was cut off at the token limit; a larger limit may help."""


class Failure(NamedTuple):
    """What an exception of an SDK means.

    Attributes
    ----------
    error : JudgeError
        What to raise if it is final.
    transient : bool
        Whether the same request may succeed later.
    pause : float or None
        Seconds the provider asks to wait.
    """

    error: JudgeError
    transient: bool = False
    pause: float | None = None


class Gate:
    """Holds all workers back while a provider asks for a pause; can be cancelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open_at = 0.0
        self._cancelled = threading.Event()

    def pause(self, seconds: float) -> None:
        """Let nobody pass for `seconds`; a longer pause that is already on stays."""
        with self._lock:
            self._open_at = max(self._open_at, time.monotonic() + seconds)

    def wait(self, seconds: float = 0.0) -> None:
        """Wait `seconds`, and until the gate is open.

        Raises
        ------
        JudgeError
            The wait was cancelled.
        """
        until = time.monotonic() + seconds
        while (left := max(until, self._open_at) - time.monotonic()) > 0:
            if self._cancelled.wait(left):
                break
        if self._cancelled.is_set():
            raise JudgeProviderError("the judge was cancelled while it waited to ask again")

    def cancel(self) -> None:
        """End all waits, now and later, with an error."""
        self._cancelled.set()

    def reopen(self) -> None:
        """Undo :meth:`cancel`."""
        self._cancelled.clear()


def send(
    request: Callable[[], T],
    explain: Callable[[Exception], Failure],
    gate: Gate,
    *,
    retries: int,
    backoff: float,
) -> T:
    """Make a request, again while its failures are transient.

    Parameters
    ----------
    request : callable
        Sends once; the SDK's own retries are off.
    explain : callable
        Turns an exception into a :class:`Failure`.
    gate : Gate
        Shared by all workers.
    retries : int
        How often a transient failure is tried again.
    backoff : float
        The first pause, seconds.

    Raises
    ------
    JudgeError
        The failure is final, or there were too many.
    """
    attempt = 0
    while True:
        gate.wait()
        failure = _try(request, explain)
        if not isinstance(failure, Failure):
            return failure.value
        if not failure.transient or attempt >= retries:
            # Raised outside the handler: the SDK's exception holds the key in its request, and
            # must not travel along as a context.
            raise failure.error
        if failure.pause is not None and failure.pause > MAX_RETRY_AFTER:
            failure.error.fatal = True
            raise failure.error
        wait = min(MAX_BACKOFF, backoff * 2**attempt) * (1 - JITTER * random.random())  # noqa: S311
        if failure.pause is not None:
            gate.pause(max(wait, failure.pause))
        attempt += 1
        gate.wait(wait)


@dataclass(frozen=True)
class _Success(Generic[T]):
    value: T


def _try(
    request: Callable[[], T], explain: Callable[[Exception], Failure]
) -> Failure | _Success[T]:
    try:
        return _Success(request())
    except JudgeError as error:
        return Failure(error)
    except Exception as error:
        return explain(error)


def of_status(status: int, text: str, headers: Mapping[str, str], *, sent: int) -> Failure:
    """Explain an HTTP status.

    Parameters
    ----------
    status : int
        The code.
    text : str
        What the provider says, without secrets.
    headers : mapping
        The response's headers, names in lower case.
    sent : int
        How many characters the request had, for the message about one that is too long.
    """
    folded = text.casefold()
    if status in (401, 403):
        return Failure(JudgeAuthenticationError(f"the key was refused ({status}): {text}"))
    if status in (400, 413) and any(word in folded for word in OVERFLOW_WORDS):
        return Failure(
            JudgeProviderError(
                f"the request of {sent:,} characters does not fit the model's context "
                f"({status}): {text}"
            )
        )
    if status == 429 and any(word in folded for word in QUOTA_WORDS):
        return Failure(_fatal(JudgeProviderError(f"the quota is used up (429): {text}")))
    if status in TRANSIENT_STATUS or status >= 500:
        what = "too many requests" if status == 429 else "the provider failed"
        return Failure(
            JudgeProviderError(f"{what} ({status}): {text}"), True, retry_after(headers, status)
        )
    what = "no such model or address" if status == 404 else "the request was refused"
    return Failure(_fatal(JudgeProviderError(f"{what} ({status}): {text}")))


def _fatal(error: JudgeError) -> JudgeError:
    error.fatal = True
    return error


def of_sdk(
    sdk: Any, error: Exception, safe: Callable[[str], str], *, timeout: float, sent: int
) -> Failure | None:
    """Explain an exception of the openai or anthropic package, which name them alike.

    Parameters
    ----------
    sdk : module
        The package.
    error : Exception
        What it raised.
    safe : callable
        Takes secrets out of a text.
    timeout : float
        The limit that was set, seconds.
    sent : int
        Characters of the request.

    Returns
    -------
    Failure or None
        None if it is none of the package's transport errors.
    """
    if isinstance(error, sdk.APIStatusError):
        text = safe(error.message)
        # The code says what the message may not: "insufficient_quota".
        code = safe(str(getattr(error, "code", None) or getattr(error, "type", None) or ""))
        told = f"{text} ({code})" if code and code not in text else text
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        return of_status(error.status_code, told, headers, sent=sent)
    if isinstance(error, sdk.APITimeoutError):
        return timed_out(timeout)
    if isinstance(error, sdk.APIConnectionError):
        return unreachable(safe(str(error.__cause__ or error)))
    return None


def not_the_protocol(host: str | None, error: Exception) -> Failure:
    """Explain a response that the SDK cannot read: an HTML page, something else's JSON."""
    return Failure(
        JudgeParseError(
            f"{host} sent something that is no reply of a model ({type(error).__name__}); "
            "is the address right?"
        )
    )


def unreachable(text: str) -> Failure:
    """Explain that no connection came about, or that it broke; the next sample fares no better."""
    return Failure(_fatal(JudgeProviderError(f"the provider cannot be reached: {text}")), True)


def timed_out(seconds: float) -> Failure:
    """Explain that no reply came in time."""
    return Failure(JudgeProviderError(f"no reply within {seconds:g} s"), True)


def retry_after(headers: Mapping[str, str], status: int = 429) -> float | None:
    """Return the seconds the provider asks to wait: milliseconds, seconds or a date.

    A 429 that names no time still asks for a pause, of a length that is up to the caller.

    Examples
    --------
    >>> retry_after({"retry-after-ms": "1500"}), retry_after({"retry-after": "3"})
    (1.5, 3.0)
    >>> retry_after({}, 429), retry_after({}, 503)
    (0.0, None)
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (TypeError, ValueError):
                continue
        if seconds == seconds:  # not NaN
            return max(0.0, seconds)
    return 0.0 if status == 429 else None
