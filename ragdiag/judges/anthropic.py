"""``AnthropicJudge``: Claude through the anthropic package (extra ``anthropic``)."""

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
from ragdiag.judges.transport import Failure, Truncated, not_the_protocol, of_sdk, send

__all__ = ["AnthropicJudge"]

DEFAULT_URL = "https://api.anthropic.com"
KEY_VARIABLE = "ANTHROPIC_API_KEY"


class AnthropicJudge(ModelJudge):
    """Asks a Claude model, with its native schema enforcement.

    Parameters
    ----------
    model : str
        The model's name.
    api_key : str, optional
        Read from ``ANTHROPIC_API_KEY`` when not given.
    base_url : str, optional
        Another address, without ``/v1``.
    **options
        `timeout`, `retries`, `backoff`, `max_tokens`, `cache`, `probe`: see
        :class:`~ragdiag.judges.model.ModelJudge`.

    Examples
    --------
    >>> AnthropicJudge("claude-haiku-4-5").name
    'anthropic:claude-haiku-4-5'
    """

    provider = "anthropic"

    def __init__(
        self,
        model: str = "claude-haiku-4-5",
        api_key: str | None = None,
        base_url: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, api_key=api_key, **options)
        self._base_url = base_url or os.environ.get("ANTHROPIC_BASE_URL") or DEFAULT_URL

    @property
    def base_url(self) -> str:
        """The address requests go to."""
        return self._base_url

    def _make_client(self) -> Any:
        try:
            import anthropic
        except ImportError:
            raise MissingDependencyError(
                "AnthropicJudge needs the package anthropic: pip install 'ragdiag[anthropic]'"
            ) from None
        key = self._key(KEY_VARIABLE)
        if not key:
            raise self._no_key(KEY_VARIABLE)
        return anthropic.Anthropic(
            api_key=key, base_url=self._base_url, timeout=self.timeout, max_retries=0
        )

    def _send(self, prompt: Prompt, max_tokens: int, repeat: int) -> Reply:
        del repeat  # there is no seed to set
        message = send(
            lambda: self._client.messages.create(
                model=self.model,
                max_tokens=max_tokens,
                system=prompt.system,
                messages=[{"role": "user", "content": prompt.user}],
                output_config={
                    "format": {"type": "json_schema", "schema": prompt.schema.model_json_schema()}
                },
            ),
            lambda error: self._explain(error, len(prompt.system) + len(prompt.user)),
            self.gate,
            retries=self.retries,
            backoff=self.backoff,
        )
        return _reply(message, prompt, max_tokens)

    def _explain(self, error: Exception, sent: int) -> Failure:
        import anthropic

        known = of_sdk(anthropic, error, self._safe, timeout=self.timeout, sent=sent)
        if known is not None:
            return known
        if isinstance(error, json.JSONDecodeError | AttributeError | TypeError):
            return not_the_protocol(self.host, error)
        return Failure(JudgeProviderError(self._safe(f"{type(error).__name__}: {error}")))


def _reply(message: Any, prompt: Prompt, max_tokens: int) -> Reply:
    """Return the reply in a message.

    Raises
    ------
    JudgeRefusalError, JudgeParseError
        The model declined, or there is no usable reply.
    """
    try:
        reason, usage, model = message.stop_reason, message.usage, message.model
        text = "".join(block.text for block in message.content if block.type == "text")
    except (AttributeError, KeyError, TypeError) as error:
        raise JudgeParseError(
            f"the server's reply holds no message ({type(error).__name__})"
        ) from None
    if reason == "refusal":
        raise JudgeRefusalError("the model declined to judge")
    if reason == "max_tokens":
        raise Truncated(f"the reply was cut off at {max_tokens:,} tokens")
    return Reply(
        read_reply(prompt.schema, text),
        model if isinstance(model, str) else None,
        getattr(usage, "input_tokens", None),
        getattr(usage, "output_tokens", None),
    )
