"""``OpenAIJudge``: OpenAI, and every server that speaks its protocol and enforces schemas."""

from __future__ import annotations

import ipaddress
import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from ragdiag.errors import (
    JudgeError,
    JudgeParseError,
    JudgeProviderError,
    JudgeRefusalError,
    MissingDependencyError,
)
from ragdiag.judges.model import ModelJudge
from ragdiag.judges.prompts import Prompt, Reply, unfit
from ragdiag.judges.transport import (
    Failure,
    Truncated,
    not_the_protocol,
    of_sdk,
    send,
)
from ragdiag.redaction import redact

if TYPE_CHECKING:
    import openai

__all__ = ["OpenAIJudge"]

DEFAULT_URL = "https://api.openai.com/v1"
#: What a server on this machine is given when it asks for no key.
NO_KEY = "no-key-needed"
#: Names of the token limit, newest first: the next is tried when a model refuses one.
TOKEN_LIMITS = ("max_completion_tokens", "max_tokens")


class OpenAIJudge(ModelJudge):
    """Asks a model through ``chat.completions.parse`` of the openai package.

    Parameters
    ----------
    model : str
        The model's name.
    api_key : str, optional
        Read from the environment (`key_variable`) when not given; a server on this machine needs
        none. It is never stored or shown.
    base_url : str, optional
        Address of an OpenAI-compatible server (Ollama, vLLM, llama.cpp, Groq, ...).
    client : openai.OpenAI, optional
        A client of your own, ``AzureOpenAI`` for instance.
    timeout : float
        Seconds to wait for a reply.
    key_variable : str
        The environment variable that holds the key.
    provider : str
        What tables call the server's side of the name, ``ollama`` for instance.
    **options
        `retries`, `backoff`, `max_tokens`, `cache`, `probe`: see
        :class:`~ragdiag.judges.model.ModelJudge`.

    Attributes
    ----------
    dropped : tuple of str
        Parameters that the model refused and that are no longer sent.

    Examples
    --------
    >>> judge = OpenAIJudge("llama3.2", base_url="http://localhost:11434/v1")
    >>> judge.name, judge.host
    ('openai:llama3.2', 'localhost')
    """

    def __init__(
        self,
        model: str = "gpt-4o-mini",
        api_key: str | None = None,
        base_url: str | None = None,
        client: openai.OpenAI | None = None,
        timeout: float = 30.0,
        *,
        key_variable: str = "OPENAI_API_KEY",
        provider: str = "openai",
        **options: Any,
    ) -> None:
        super().__init__(model, api_key=api_key, timeout=timeout, **options)
        self.provider = provider
        self._key_variable = key_variable
        given = str(client.base_url) if client is not None else base_url
        self._base_url = given or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL
        self._given_client = client
        self._dropped: list[str] = []

    @property
    def base_url(self) -> str:
        """The address requests go to."""
        return self._base_url

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters that the model refused."""
        return tuple(self._dropped)

    def _make_client(self) -> Any:
        try:
            import openai
        except ImportError:
            raise MissingDependencyError(
                "this judge needs the package openai: pip install openai"
            ) from None
        if self._given_client is not None:
            # Repetitions are ours: one gate for all workers, and none that cannot help.
            return self._given_client.with_options(max_retries=0, timeout=self.timeout)
        key = self._key(self._key_variable)
        if not key and not _is_local(self._base_url):
            raise self._no_key(self._key_variable)
        return openai.OpenAI(
            api_key=key or NO_KEY, base_url=self._base_url, timeout=self.timeout, max_retries=0
        )

    def _send(self, prompt: Prompt, max_tokens: int, repeat: int) -> Reply:
        sent = len(prompt.system) + len(prompt.user)
        while True:
            parameters = self._parameters(max_tokens, repeat)
            try:
                completion = send(
                    lambda parameters=parameters: self._client.chat.completions.parse(  # type: ignore[misc]
                        model=self.model,
                        messages=[
                            {"role": "system", "content": prompt.system},
                            {"role": "user", "content": prompt.user},
                        ],
                        response_format=prompt.schema,
                        **parameters,
                    ),
                    lambda error: self._explain(error, sent, max_tokens),
                    self.gate,
                    retries=self.retries,
                    backoff=self.backoff,
                )
            except _ParameterRefused as refused:
                self._drop(refused.parameter)
                continue
            return _reply(completion)

    def _parameters(self, max_tokens: int, repeat: int) -> dict[str, Any]:
        """Return the optional parameters that the model has not refused."""
        parameters: dict[str, Any] = {"temperature": 0.0, "seed": repeat}
        limit = next((name for name in TOKEN_LIMITS if name not in self._dropped), None)
        if limit is not None:
            parameters[limit] = max_tokens
        return {name: value for name, value in parameters.items() if name not in self._dropped}

    def _drop(self, parameter: str) -> None:
        with self._lock:
            if parameter not in self._dropped:
                self._dropped.append(parameter)

    def _explain(self, error: Exception, sent: int, max_tokens: int) -> Failure:
        """Say what an exception means; nothing of the exception itself is kept."""
        import openai

        if isinstance(error, openai.APIStatusError) and error.status_code in (400, 422):
            refused = self._refused(error.message, getattr(error, "param", None))
            if refused is not None:
                return Failure(_ParameterRefused(refused))
        known = of_sdk(openai, error, self._safe, timeout=self.timeout, sent=sent)
        if known is not None:
            return known
        if isinstance(error, openai.LengthFinishReasonError):
            return Failure(Truncated(f"the reply was cut off at {max_tokens:,} tokens"))
        if isinstance(error, openai.ContentFilterFinishReasonError):
            return Failure(JudgeRefusalError("the provider's content filter stopped the reply"))
        if isinstance(error, ValidationError):
            return Failure(unfit(error))
        if isinstance(
            error, json.JSONDecodeError | AttributeError | TypeError | openai.OpenAIError
        ):
            return not_the_protocol(self.host, error)
        return Failure(JudgeProviderError(self._safe(f"{type(error).__name__}: {error}")))

    def _refused(self, text: str, parameter: object) -> str | None:
        """Return which of the parameters that were sent the server does not take."""
        candidates = [name for name in self._parameters(1, 0) if name not in self._dropped]
        if parameter in candidates:
            return str(parameter)
        # "Unsupported parameter: 'max_tokens' ... use 'max_completion_tokens'": the first counts.
        named = [(text.find(name), name) for name in candidates if name in text]
        return min(named)[1] if named else None


class _ParameterRefused(JudgeError):
    """The model does not take one of the optional parameters."""

    def __init__(self, parameter: str) -> None:
        super().__init__(f"the model does not take {parameter!r}")
        self.parameter = parameter


def _reply(completion: Any) -> Reply:
    """Return the reply in a completion, which may be of any shape a server likes.

    Raises
    ------
    JudgeRefusalError, JudgeParseError
        The model declined, or there is no usable reply.
    """
    try:
        message = completion.choices[0].message
        parsed, refusal = message.parsed, message.refusal
        usage = completion.usage
        model = completion.model
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise JudgeParseError(
            f"the server's reply holds no message ({type(error).__name__})"
        ) from None
    if refusal:
        raise JudgeRefusalError(f"the model declined to judge: {redact(str(refusal))[:300]}")
    if parsed is None:
        raise JudgeParseError("the reply is empty")
    return Reply(
        parsed,
        model if isinstance(model, str) else None,
        getattr(usage, "prompt_tokens", None),
        getattr(usage, "completion_tokens", None),
    )


def _is_local(url: str) -> bool:
    """Tell whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
