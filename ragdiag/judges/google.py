"""``GeminiJudge``: Gemini through the google-genai package (extra ``google``)."""

from __future__ import annotations

import json
import os
from typing import Any

from ragdiag.errors import (
    JudgeParseError,
    JudgeProviderError,
    JudgeRefusalError,
    MissingDependencyError,
)
from ragdiag.judges.model import ModelJudge
from ragdiag.judges.prompts import Prompt, Reply, read_reply
from ragdiag.judges.transport import (
    Failure,
    Truncated,
    not_the_protocol,
    of_status,
    send,
    timed_out,
    unreachable,
)

__all__ = ["GeminiJudge"]

DEFAULT_URL = "https://generativelanguage.googleapis.com"
KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
#: Reasons for which a candidate ends without what was asked for.
TRUNCATED = "MAX_TOKENS"
REFUSED = frozenset(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY")
)


class GeminiJudge(ModelJudge):
    """Asks a Gemini model, with its native schema enforcement.

    Parameters
    ----------
    model : str
        The model's name.
    api_key : str, optional
        Read from ``GEMINI_API_KEY`` or ``GOOGLE_API_KEY`` when not given.
    base_url : str, optional
        Another address.
    **options
        `timeout`, `retries`, `backoff`, `max_tokens`, `cache`, `probe`: see
        :class:`~ragdiag.judges.model.ModelJudge`.

    Examples
    --------
    >>> GeminiJudge("gemini-2.5-flash").host
    'generativelanguage.googleapis.com'
    """

    provider = "google"

    def __init__(
        self,
        model: str = "gemini-2.5-flash",
        api_key: str | None = None,
        base_url: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, api_key=api_key, **options)
        self._base_url = base_url or os.environ.get("GOOGLE_GEMINI_BASE_URL") or DEFAULT_URL

    @property
    def base_url(self) -> str:
        """The address requests go to."""
        return self._base_url

    def _make_client(self) -> Any:
        try:
            from google import genai
        except ImportError:
            raise MissingDependencyError(
                "GeminiJudge needs the package google-genai: pip install 'ragdiag[google]'"
            ) from None
        key = self._key(*KEY_VARIABLES)
        if not key:
            raise self._no_key(KEY_VARIABLES[0])
        return genai.Client(
            api_key=key,
            vertexai=False,
            http_options={
                "base_url": self._base_url,
                "timeout": round(self.timeout * 1000),
                "retry_options": {"attempts": 1},
            },
        )

    def _send(self, prompt: Prompt, max_tokens: int, repeat: int) -> Reply:
        response = send(
            lambda: self._client.models.generate_content(
                model=self.model,
                contents=prompt.user,
                config={
                    "system_instruction": prompt.system,
                    "response_mime_type": "application/json",
                    "response_json_schema": prompt.schema.model_json_schema(),
                    "temperature": 0.0,
                    "seed": repeat,
                    "max_output_tokens": max_tokens,
                },
            ),
            lambda error: self._explain(error, len(prompt.system) + len(prompt.user)),
            self.gate,
            retries=self.retries,
            backoff=self.backoff,
        )
        return _reply(response, prompt, max_tokens)

    def _explain(self, error: Exception, sent: int) -> Failure:
        from google.genai import errors

        name = type(error).__name__
        if isinstance(error, errors.APIError):
            text = self._safe(f"{error.status or ''} {error.message or ''}".strip())
            headers = getattr(error.response, "headers", None) or {}
            named = {str(key).lower(): str(value) for key, value in dict(headers).items()}
            return of_status(int(error.code or 0), text, named, sent=sent)
        if isinstance(error, json.JSONDecodeError | AttributeError | TypeError | ValueError):
            return not_the_protocol(self.host, error)
        # Transport errors come as they are from whichever HTTP package is installed.
        if "Timeout" in name:
            return timed_out(self.timeout)
        if type(error).__module__.startswith(("httpx", "httpcore", "requests", "aiohttp")):
            return unreachable(self._safe(str(error) or name))
        return Failure(JudgeProviderError(self._safe(f"{name}: {error}")))


def _reply(response: Any, prompt: Prompt, max_tokens: int) -> Reply:
    """Return the reply in a response.

    Raises
    ------
    JudgeRefusalError, JudgeParseError
        The model declined, or there is no usable reply.
    """
    feedback = getattr(response, "prompt_feedback", None)
    if getattr(feedback, "block_reason", None):
        raise JudgeRefusalError("the provider's content filter stopped the request")
    try:
        candidate = response.candidates[0]
        reason = getattr(candidate.finish_reason, "name", str(candidate.finish_reason or ""))
        parts = (candidate.content.parts if candidate.content else None) or []
        text = "".join(part.text or "" for part in parts if not part.thought)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise JudgeParseError(
            f"the server's reply holds no candidate ({type(error).__name__})"
        ) from None
    if reason in REFUSED:
        raise JudgeRefusalError(f"the model declined to judge ({reason.lower()})")
    if reason == TRUNCATED:
        raise Truncated(f"the reply was cut off at {max_tokens:,} tokens")
    usage = response.usage_metadata
    return Reply(
        read_reply(prompt.schema, text),
        response.model_version,
        getattr(usage, "prompt_token_count", None),
        getattr(usage, "candidates_token_count", None),
    )
