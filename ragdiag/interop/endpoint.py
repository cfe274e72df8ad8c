"""One address that is asked over HTTP: retries, timeouts, and errors without secrets.

Only the standard library is used. Redirects are not followed, since the headers with a key would go
along to another host. Errors name the address without its query and user, and what a server said is
searched for secrets before it is quoted.
"""

from __future__ import annotations

import base64
import functools
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragdiag.cells import shown
from ragdiag.codec import json_text
from ragdiag.errors import PipelineError, PipelineLoadError
from ragdiag.judges.transport import TRANSIENT_STATUS, retry_after
from ragdiag.redaction import redact

__all__ = ["QUERY", "Endpoint"]

#: What stands in an address or a request for the question.
QUERY = "{query}"

#: Seconds before the first, second, ... repetition of a request.
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
#: A server that asks for a longer pause, seconds, is not waited for.
MAX_RETRY_AFTER = 30.0

#: A reply may have so many bytes; so many characters of one are quoted in an error.
MAX_REPLY = 32 * 2**20
QUOTED = 300

#: Headers that say nothing secret.
OPEN_HEADERS = ("accept", "content-type", "user-agent")

#: What may stand in an address as it is.
PLAIN_IN_URL = "%/:=&?~#+!$,;'@()*[]{}"


@dataclass(frozen=True)
class Endpoint:
    """One address, and how it is asked."""

    url: str
    shown: str
    headers: Mapping[str, str] = field(repr=False)
    timeout: float
    retries: int

    @classmethod
    def of(cls, url: str, headers: Mapping[str, str], timeout: float, retries: int) -> Endpoint:
        """Return the endpoint at an address.

        Raises
        ------
        PipelineLoadError
            The address or a header cannot be one.
        """
        try:
            parts = urllib.parse.urlsplit(url)
            port = "" if parts.port is None else f":{parts.port}"
        except (ValueError, AttributeError, TypeError):
            raise PipelineLoadError(f"{redact(shown(url))} is no address") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PipelineLoadError(
                f"expected an address that begins with http:// or https://, got "
                f"{redact(shown(url))}"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        sent = {"Accept": "application/json", "User-Agent": "ragdiag", **headers}
        for name, value in sent.items():
            if not isinstance(value, str) or not value.isprintable() or not value.isascii():
                raise PipelineLoadError(f"header {name!r}: its value must be printable ASCII")
        if parts.username is not None:
            user = f"{urllib.parse.unquote(parts.username)}:"
            user += urllib.parse.unquote(parts.password or "")
            sent["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        bare = parts._replace(netloc=f"{host}{port}", fragment="").geturl()
        return cls(
            urllib.parse.quote(bare, safe=PLAIN_IN_URL),
            f"{parts.scheme}://{host}{port}{parts.path}",
            sent,
            timeout,
            retries,
        )

    def exchange(self, body: Any, query: str) -> Any:
        """Send one request, again while its failure may pass, and return the JSON of the reply.

        Raises
        ------
        PipelineError
            It was refused, or the reply is no JSON: the same request would fail again.
        ConnectionError
            There was no reply in all attempts.
        """
        for attempt in range(self.retries + 1):
            outcome = self._once(body, query)
            if not isinstance(outcome, _Passing):
                return outcome
            pause = max(PAUSES[min(attempt, len(PAUSES) - 1)], outcome.pause or 0.0)
            if attempt == self.retries or pause > MAX_RETRY_AFTER:
                break
            time.sleep(pause)
        raise ConnectionError(outcome.message)

    def _once(self, body: Any, query: str) -> Any:
        url, data, headers = self.url, None, dict(self.headers)
        url = url.replace(QUERY, urllib.parse.quote(query, safe="", errors="replace"))
        if body is not None:
            data = json_text(body).encode("utf-8", "replace")
            headers.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(url, data, headers)  # noqa: S310  http(s), see of()
        try:
            with _opener().open(request, timeout=self.timeout) as reply:
                return self._parsed(reply.read(MAX_REPLY + 1))
        except urllib.error.HTTPError as error:
            with error:
                refused = self._refused(error)
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, TimeoutError):
                return _Passing(f"{self.shown}: no reply within {self.timeout:g} s")
            return _Passing(f"{self.shown}: cannot be reached: {self._safe(str(reason))}")
        if isinstance(refused, _Passing):
            return refused
        # Raised outside the handlers: what failed holds the request, headers and all.
        raise refused

    def _refused(self, error: urllib.error.HTTPError) -> PipelineError | _Passing:
        status, headers = error.code, {k.lower(): v for k, v in error.headers.items()}
        if 300 <= status < 400:
            target = _without_secrets(headers.get("location", ""))
            return PipelineError(
                f"{self.shown}: moved to {target} ({status}); give that address, redirects are not "
                "followed"
            )
        try:
            text = error.read(4 * QUOTED).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            text = ""
        told = f"{self.shown}: HTTP {status} {error.reason}"
        told = self._safe(f"{told}: {_shortened(text)}" if text.strip() else told)
        if status in TRANSIENT_STATUS or status >= 500:
            return _Passing(told, retry_after(headers, status))
        return PipelineError(told)

    def _parsed(self, content: bytes) -> Any:
        if len(content) > MAX_REPLY:
            raise PipelineError(f"{self.shown}: the reply is larger than {MAX_REPLY:,} bytes")
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            text = _shortened(content[: 4 * QUOTED].decode("utf-8", "replace"))
            problem = self._safe(f"{self.shown}: the reply is no JSON: {text}")
        raise PipelineError(problem)

    def _safe(self, text: str) -> str:
        secrets = [
            part
            for name, value in self.headers.items()
            if name.lower() not in OPEN_HEADERS
            for part in (value, *value.split())
        ]
        values = urllib.parse.parse_qs(urllib.parse.urlsplit(self.url).query)
        return redact(text, [*secrets, *(v for held in values.values() for v in held)])


@dataclass(frozen=True)
class _Passing:
    """A failure that may pass, and the pause the server asks for."""

    message: str
    pause: float | None = None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirect)


def _without_secrets(url: str) -> str:
    """Return an address without user and query."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl()


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"
