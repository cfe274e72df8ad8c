"""``ModelJudge``: what all judges that ask a language model have in common.

Two isolated requests, verdicts derived in code from checked evidence, one question more when a
reply is unusable or contradicts itself, and a cache of good replies. A provider adds the sending.
"""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from ragdiag.errors import (
    JudgeAuthenticationError,
    JudgeError,
    JudgeParseError,
    JudgeProviderError,
    SettingsError,
)
from ragdiag.judges.base import Judge
from ragdiag.judges.cache import JudgeCache, cache_key
from ragdiag.judges.findings import SideFinding, correctness_of, groundedness_of, result_of
from ragdiag.judges.prechecks import precheck
from ragdiag.judges.prompts import (
    FIXED_NONCE,
    PROMPT_VERSION,
    Prompt,
    Reply,
    correctness_prompt,
    groundedness_prompt,
    make_nonce,
    probe_prompt,
)
from ragdiag.judges.quotes import MIN_COVERAGE, coverage
from ragdiag.judges.transport import Gate, Truncated
from ragdiag.redaction import redact
from ragdiag.schema import JudgeResult, RetrievedChunk

__all__ = ["ModelJudge"]

#: Tokens a reply may have at first; twice as many when it was cut off.
MAX_TOKENS = 1_500
#: The probe's reply is tiny, but a grammar lets a small model write white space first.
PROBE_TOKENS = 256


class ModelJudge(Judge):
    """Base of the judges that ask a language model.

    Parameters
    ----------
    model : str
        The model's name at the provider.
    api_key : str, optional
        Never stored or shown.
    timeout : float
        Seconds to wait for a reply.
    retries : int
        How often a transient failure (408, 409, 429, 5xx, timeout, connection) is tried again.
    backoff : float
        Seconds before the first repetition; doubled each time.
    max_tokens : int
        Tokens a reply may have; twice as many when it was cut off.
    cache : str, path-like or JudgeCache, optional
        A folder that keeps good replies, shared between runs.
    probe : bool
        Whether :meth:`prepare` asks one tiny question to see that schemas are enforced.
    """

    #: What stands before the model in the judge's name.
    provider: str

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        timeout: float = 30.0,
        retries: int = 4,
        backoff: float = 0.5,
        max_tokens: int = MAX_TOKENS,
        cache: str | os.PathLike[str] | JudgeCache | None = None,
        probe: bool = True,
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise SettingsError(f"model must name a model, got {model!r}")
        if not timeout > 0:
            raise SettingsError(f"timeout must be above 0 s, got {timeout!r}")
        if retries < 0 or max_tokens < 1:
            raise SettingsError(
                f"retries must be at least 0 and max_tokens at least 1, "
                f"got {retries!r} and {max_tokens!r}"
            )
        self.model = model
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self.max_tokens = max_tokens
        self.cache = cache if isinstance(cache, JudgeCache | None) else JudgeCache(cache)
        self.gate = Gate()
        self._probe = probe
        self._prepared = False
        self._api_key = api_key
        self._client: Any = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """``PROVIDER:MODEL``."""
        return f"{self.provider}:{self.model}"

    @property
    def base_url(self) -> str:
        """The address requests go to."""
        raise NotImplementedError

    @property
    def host(self) -> str | None:
        """The host that receives questions, answers and chunks."""
        return urlsplit(self.base_url).hostname

    @property
    def identity(self) -> Mapping[str, Any]:
        """Provider, model, address without user and password, prompts, token limit."""
        return {
            "judge": self.provider,
            "model": self.model,
            "base_url": _without_login(self.base_url),
            "prompts": PROMPT_VERSION,
            "max_tokens": self.max_tokens,
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, host={self.host!r})"

    @abstractmethod
    def _send(self, prompt: Prompt, max_tokens: int, repeat: int) -> Reply:
        """Send one request and return its reply, or raise a JudgeError."""

    @abstractmethod
    def _make_client(self) -> Any:
        """Return the SDK's client; raise MissingDependencyError or JudgeAuthenticationError."""

    def _connect(self) -> None:
        """Make the client, once for all workers."""
        if self._client is not None:
            return
        with self._lock:
            if self._client is None:
                self._client = self._make_client()

    def _key(self, *variables: str) -> str | None:
        """Return the key: as given, or from the first of these environment variables."""
        return self._api_key or next(filter(None, map(os.environ.get, variables)), None)

    def _no_key(self, variable: str) -> JudgeAuthenticationError:
        return JudgeAuthenticationError(
            f"judge {self.name!r} needs a key: set the environment variable {variable}, "
            "or pass api_key="
        )

    def _secrets(self) -> list[str]:
        """Return the keys this judge holds, which may stand in no message."""
        known = [self._api_key, getattr(self._client, "api_key", None)]
        return [key for key in known if isinstance(key, str)]

    def _safe(self, text: str) -> str:
        """Return `text` without this judge's key and anything that looks like one."""
        return redact(text, self._secrets())

    def prepare(self) -> None:
        """Check package, key, server and model, and that the server enforces schemas.

        Raises
        ------
        MissingDependencyError, JudgeError
            What is missing, and what to do.
        """
        self.gate.reopen()
        self._connect()
        if self._prepared or not self._probe:
            return
        try:
            self._send(probe_prompt(), PROBE_TOKENS, 0)
        except JudgeParseError as error:
            problem = JudgeProviderError(
                f"{self.host} does not make {self.model!r} keep to a JSON schema, which a judge "
                f"needs ({error}); use a server that enforces response_format json_schema, or "
                "another model"
            )
            problem.fatal = True
            raise problem from None
        self._prepared = True

    def cancel(self) -> None:
        """End all waits between repetitions; :meth:`prepare` undoes it."""
        self.gate.cancel()

    def prompts(
        self,
        query: str,
        expected_answer: str | None,
        generated_answer: str,
        context: Sequence[RetrievedChunk],
    ) -> list[str]:
        """Return the text of each request that would be sent."""
        asked = (
            self._correctness(query, expected_answer, generated_answer, lambda: FIXED_NONCE),
            self._groundedness(query, generated_answer, context, lambda: FIXED_NONCE),
        )
        return [f"{p.system}\n\n{p.user}" for p in asked if isinstance(p, Prompt)]

    def evaluate(
        self,
        query: str,
        expected_answer: str | None,
        generated_answer: str,
        context: Sequence[RetrievedChunk],
    ) -> JudgeResult:
        """Judge one answer with two requests; see :meth:`Judge.evaluate`."""
        return self.evaluate_again(0, query, expected_answer, generated_answer, context)

    def evaluate_again(
        self,
        repeat: int,
        query: str,
        expected_answer: str | None,
        generated_answer: str,
        context: Sequence[RetrievedChunk],
    ) -> JudgeResult:
        """Judge the same answer once more; see :meth:`Judge.evaluate_again`."""
        self._connect()
        chunks = {f"C{n}": (chunk.id, chunk.text) for n, chunk in enumerate(context, start=1)}

        def correctness(nonce: Callable[[], str]) -> Prompt | SideFinding:
            return self._correctness(query, expected_answer, generated_answer, nonce)

        def groundedness(nonce: Callable[[], str]) -> Prompt | SideFinding:
            return self._groundedness(query, generated_answer, context, nonce)

        def complete(reply: BaseModel) -> str | None:
            share = coverage(generated_answer, reply.claims)  # type: ignore[attr-defined]
            if share < MIN_COVERAGE:
                return f"the claims hold {share:.0%} of the answer's words, which leaves some out"
            return None

        correct = self._side(correctness, repeat, _consistent, correctness_of)
        grounded = self._side(
            groundedness,
            repeat,
            complete,
            lambda reply: groundedness_of(reply, query, chunks),
        )
        errors = [side.error for side in (correct, grounded) if side.error is not None]
        if errors and not any(side.decided for side in (correct, grounded)):
            raise next((error for error in errors if error.fatal), errors[0])
        return result_of(correct, grounded, [query, generated_answer], chunks)

    def _correctness(
        self, query: str, expected: str | None, answer: str, nonce: Callable[[], str]
    ) -> Prompt | SideFinding:
        """Return the request about correctness, or the finding that needs none."""
        if expected is None:
            return SideFinding(reason="there is no expected answer")
        stopped = precheck(query, expected, answer)
        if stopped:
            return SideFinding(False, 1.0, stopped.reason)
        return correctness_prompt(query, expected, answer, nonce=nonce)

    def _groundedness(
        self,
        query: str,
        answer: str,
        context: Sequence[RetrievedChunk],
        nonce: Callable[[], str],
    ) -> Prompt | SideFinding:
        """Return the request about groundedness, or the finding that needs none."""
        stopped = precheck(query, None, answer)
        if stopped:
            return SideFinding(reason=f"{stopped.reason}, so it claims nothing")
        chunks = [(f"C{n}", chunk.text) for n, chunk in enumerate(context, start=1)]
        if not any(text.strip() for _, text in chunks):
            return SideFinding(False, 1.0, "there is no context that could support the answer")
        return groundedness_prompt(query, chunks, answer, nonce=nonce)

    def _side(
        self,
        make: Callable[[Callable[[], str]], Prompt | SideFinding],
        repeat: int,
        check: Callable[[BaseModel], str | None],
        derive: Callable[[Any], SideFinding],
    ) -> SideFinding:
        """Return one side's finding, its error inside if it has one."""
        prompt = make(make_nonce)
        if isinstance(prompt, SideFinding):
            return prompt
        try:
            reply = self._ask(prompt, make, repeat, check)
        except JudgeError as error:
            return SideFinding(error=error)
        return derive(reply.content)._replace(reply=reply)

    def _ask(
        self,
        prompt: Prompt,
        make: Callable[[Callable[[], str]], Prompt | SideFinding],
        repeat: int,
        check: Callable[[BaseModel], str | None],
    ) -> Reply:
        """Return a usable reply: from the cache, or from the model, which is asked twice at most.

        Raises
        ------
        JudgeError
            The request failed for good, or the second reply is no better than the first.
        """
        key = "" if self.cache is None else self._digest(make(lambda: FIXED_NONCE), repeat)
        stored = self._recall(key, prompt.schema)
        if stored is not None:
            return stored
        problem: JudgeError | None = None
        budget = self.max_tokens
        for _ in range(2):
            asked = prompt
            if problem is not None and not isinstance(problem, Truncated):
                asked = prompt._replace(user=f"{prompt.user}\n\nYour last reply: {problem}.")
            try:
                reply = self._send(asked, budget, repeat)
            except Truncated as error:
                problem, budget = error, 2 * budget
                continue
            except JudgeParseError as error:
                problem = error
                continue
            fault = check(reply.content)
            if fault is None:
                self._keep(key, reply)
                return reply
            problem = JudgeParseError(fault)
        raise JudgeParseError(str(problem))

    def _digest(self, fixed: Prompt | SideFinding, repeat: int) -> str:
        """Return the digest of all that shapes the reply; `fixed` has the same nonce always."""
        assert isinstance(fixed, Prompt)
        return cache_key(
            {
                **self.identity,
                "system": fixed.system,
                "user": fixed.user,
                "schema": fixed.schema.model_json_schema(),
                "repeat": repeat,
            }
        )

    def _recall(self, key: str, schema: type[BaseModel]) -> Reply | None:
        value = None if self.cache is None else self.cache.get(key)
        if value is None or self.cache is None:
            return None
        try:
            return Reply(**{**value, "content": schema.model_validate(value["content"])})
        except (ValidationError, KeyError, TypeError):
            self.cache.reject()
            return None

    def _keep(self, key: str, reply: Reply) -> None:
        if self.cache is not None:
            self.cache.put(key, {**reply._asdict(), "content": reply.content.model_dump()})


def _consistent(reply: Any) -> str | None:
    """Return how a reply about correctness contradicts itself, or None."""
    if reply.verdict == "correct" and (reply.wrong_facts or reply.missing_facts):
        return "the verdict is correct, and facts are listed as wrong or missing"
    return None


def _without_login(url: str) -> str:
    """Return `url` without user, password and query."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return redact(f"{parts.scheme}://{host}{port}{parts.path}".rstrip("/"))
