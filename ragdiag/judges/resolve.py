"""A judge by its name: ``"lexical"``, ``"openai:gpt-4o-mini"``, ``"ollama:llama3.2"``."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from ragdiag.errors import SettingsError
from ragdiag.judges.base import Judge

__all__ = ["resolve_judge"]


class _Provider(NamedTuple):
    module: str
    judge: str
    options: dict[str, Any]


#: What stands before the colon. Servers that speak OpenAI's protocol are a base URL, no more.
PROVIDERS: dict[str, _Provider] = {
    "openai": _Provider("openai", "OpenAIJudge", {}),
    "ollama": _Provider(
        "openai", "OpenAIJudge", {"base_url": "http://localhost:11434/v1", "provider": "ollama"}
    ),
    "vllm": _Provider(
        "openai", "OpenAIJudge", {"base_url": "http://localhost:8000/v1", "provider": "vllm"}
    ),
    "llamacpp": _Provider(
        "openai", "OpenAIJudge", {"base_url": "http://localhost:8080/v1", "provider": "llamacpp"}
    ),
    "groq": _Provider(
        "openai",
        "OpenAIJudge",
        {
            "base_url": "https://api.groq.com/openai/v1",
            "key_variable": "GROQ_API_KEY",
            "provider": "groq",
        },
    ),
    "mistral": _Provider(
        "openai",
        "OpenAIJudge",
        {
            "base_url": "https://api.mistral.ai/v1",
            "key_variable": "MISTRAL_API_KEY",
            "provider": "mistral",
        },
    ),
    "anthropic": _Provider("anthropic", "AnthropicJudge", {}),
    "google": _Provider("google", "GeminiJudge", {}),
    "gemini": _Provider("google", "GeminiJudge", {}),
}


def resolve_judge(spec: Judge | str | None, **options: Any) -> Judge | None:
    """Return the judge that `spec` names.

    Parameters
    ----------
    spec : Judge, str or None
        A judge as it is; ``"lexical"``; or ``"PROVIDER:MODEL"`` with one of ``openai``,
        ``ollama``, ``vllm``, ``llamacpp``, ``groq``, ``mistral``, ``anthropic``, ``google``.
    **options
        Passed to the judge's constructor (``base_url``, ``api_key``, ``cache``, ``timeout``);
        None leaves a default as it is.

    Raises
    ------
    SettingsError
        The name is unknown, or a judge was given together with options.

    Examples
    --------
    >>> resolve_judge("lexical").name
    'lexical'
    >>> resolve_judge(None) is None
    True
    """
    options = {name: value for name, value in options.items() if value is not None}
    if spec is None:
        return None
    if not isinstance(spec, str):
        if not callable(getattr(spec, "evaluate", None)):
            raise SettingsError(f"judge must be a Judge or a name, got {spec!r}; {_KNOWN}")
        if options:
            raise SettingsError(
                f"options {sorted(options)} go to the judge's constructor, "
                f"since the judge was given as an object ({type(spec).__name__})"
            )
        return spec
    name, colon, model = (part.strip() for part in spec.partition(":"))
    if name.casefold() == "lexical" and not colon:
        return _made(spec, _Provider("lexical", "LexicalJudge", {}), options)
    provider = PROVIDERS.get(name.casefold())
    if provider is None or (colon and not model):
        raise SettingsError(f"unknown judge {spec!r}; {_KNOWN}")
    if model:
        options["model"] = model
    elif provider.options:
        raise SettingsError(f"judge {spec!r} names no model; write {name}:MODEL")
    return _made(spec, provider, options)


def _made(spec: str, provider: _Provider, options: dict[str, Any]) -> Judge:
    make = getattr(import_module(f"ragdiag.judges.{provider.module}"), provider.judge)
    try:
        judge: Judge = make(**{**provider.options, **options})
    except TypeError as error:  # an option that this judge does not have
        raise SettingsError(f"judge {spec!r} does not take these options: {error}") from None
    return judge


_KNOWN = "judges are 'lexical' and " + ", ".join(f"'{name}:MODEL'" for name in PROVIDERS)
