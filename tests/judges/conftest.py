"""A scripted server on loopback that speaks three providers' protocols."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, NamedTuple

import openai
import pytest

from ragdiag.errors import (
    JudgeAuthenticationError,
    JudgeError,
    JudgeParseError,
    JudgeProviderError,
    JudgeRefusalError,
)
from ragdiag.judges.openai import OpenAIJudge
from ragdiag.schema import RetrievedChunk


class Say(NamedTuple):
    """One scripted response."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    delay: float = 0.0
    drop: bool = False


def side_of(request: dict[str, Any]) -> str:
    """Which of the questions a request is: ``grounded``, ``correct`` or ``probe``."""
    text = json.dumps(request)
    if "GroundednessReply" in text or ("Task (" in text and "factual claims" in text):
        return "grounded"
    if "CorrectnessReply" in text or "EXPECTED ANSWER" in text:
        return "correct"
    return "probe"


CORRECT = {
    "missing_facts": [],
    "wrong_facts": [],
    "reason": "same fact",
    "verdict": "correct",
    "confidence": 0.9,
}
SUPPORTED = {
    "claims": [
        {
            "claim": "Refunds take 7 days.",
            "chunk": "C1",
            "quote": "Card payments are refunded within 7 days.",
            "verdict": "supported",
        }
    ],
    "confidence": 0.8,
}
GOOD = {"grounded": SUPPORTED, "correct": CORRECT, "probe": {"colour": "vermilion"}}


def completion(content: str | None, **changes: Any) -> Say:
    """A chat completion with `content`."""
    message = {"role": "assistant", "content": content, **changes.pop("message", {})}
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted-1",
        "choices": [
            {"index": 0, "finish_reason": changes.pop("finish_reason", "stop"), "message": message}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        **changes,
    }
    return Say(json.dumps(body).encode())


def failure(status: int, message: str = "scripted", code: str | None = None, **headers: str) -> Say:
    """An error response as OpenAI words it."""
    body = {"error": {"message": message, "type": "scripted", "param": None, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Say(json.dumps(body).encode(), status, named)


def good(request: dict[str, Any]) -> Say:
    """A usable reply to whichever question was asked."""
    return completion(json.dumps(GOOD[side_of(request)]))


HTML = b"<html><body>Bad gateway</body></html>"


class Bad(NamedTuple):
    """A bad response, what must come of it, and how many requests are made."""

    say: Say
    kind: type[JudgeError]
    text: str
    requests: int


#: Every row of the table of server behaviours.
BAD: dict[str, Bad] = {
    "truncated": Bad(completion('{"cla', finish_reason="length"), JudgeParseError, "cut off", 2),
    "refusal": Bad(
        completion(None, message={"refusal": "I cannot judge this."}),
        JudgeRefusalError,
        "declined",
        1,
    ),
    "content filter": Bad(
        completion("", finish_reason="content_filter"),
        JudgeRefusalError,
        "content filter",
        1,
    ),
    "empty": Bad(completion(""), JudgeParseError, "empty", 2),
    "null content": Bad(completion(None), JudgeParseError, "empty", 2),
    "prose": Bad(completion("The answer is correct."), JudgeParseError, "schema", 2),
    "fence": Bad(completion('```json\n{"a": 1}\n```'), JudgeParseError, "schema", 2),
    "bad enum": Bad(
        completion(json.dumps({**CORRECT, "verdict": "yes"})),
        JudgeParseError,
        "verdict",
        2,
    ),
    "extra key": Bad(completion(json.dumps({**CORRECT, "more": 1})), JudgeParseError, "more", 2),
    "html as json": Bad(Say(HTML), JudgeParseError, "no reply of a model", 2),
    "html": Bad(
        Say(HTML, headers={"content-type": "text/html"}),
        JudgeParseError,
        "no reply of a model",
        2,
    ),
    "no choices": Bad(completion("{}", choices=[]), JudgeParseError, "no message", 2),
    "null choices": Bad(completion("{}", choices=None), JudgeParseError, "", 2),
    "bad request": Bad(failure(400, "bad thing"), JudgeProviderError, "bad thing", 1),
    "unprocessable": Bad(failure(422, "bad thing"), JudgeProviderError, "422", 1),
    "bad key": Bad(failure(401, "Incorrect API key"), JudgeAuthenticationError, "refused", 1),
    "forbidden": Bad(failure(403, "no"), JudgeAuthenticationError, "403", 1),
    "no model": Bad(failure(404, "model not found"), JudgeProviderError, "no such model", 1),
    "no quota": Bad(
        failure(429, "You exceeded it", code="insufficient_quota"),
        JudgeProviderError,
        "quota",
        1,
    ),
    "busy": Bad(failure(429, "slow down"), JudgeProviderError, "too many requests", 3),
    "conflict": Bad(failure(409), JudgeProviderError, "409", 3),
    "server timeout": Bad(failure(408), JudgeProviderError, "408", 3),
    "server error": Bad(failure(500), JudgeProviderError, "provider failed", 3),
    "gateway": Bad(failure(503), JudgeProviderError, "503", 3),
    "dropped": Bad(Say(b"", drop=True), JudgeProviderError, "cannot be reached", 3),
}
#: What would fail in the same way for the next sample.
FATAL = {"bad request", "unprocessable", "bad key", "forbidden", "no model", "no quota", "dropped"}


Script = Callable[[dict[str, Any], int], Say]


class Server:
    """Answers from a script and remembers what it was asked."""

    def __init__(self) -> None:
        self.reset()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each response waits 40 ms for an ACK
            wbufsize = -1

            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
                request = json.loads(body)
                request["_path"] = self.path
                with outer.lock:
                    number = len(outer.requests)
                    outer.requests.append(request)
                    outer.bodies.append(body)
                    outer.times.append(time.monotonic())
                    outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                say = outer.script(request, number)
                if say.delay:
                    outer.released.wait(say.delay)
                if say.drop:
                    self.close_connection = True
                    return
                self.send_response(say.status)
                headers = {"content-type": "application/json", **say.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(say.body)))
                self.end_headers()
                try:
                    self.wfile.write(say.body)
                except OSError:  # the client did not wait
                    self.close_connection = True

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *args: Any) -> None:
                pass

        self.released = threading.Event()
        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.url = f"{self.root}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def reset(self) -> None:
        """Forget the script and what was asked."""
        self.script: Script = lambda request, n: good(request)
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[str] = []
        self.lock = threading.Lock()

    def always(self, say: Say) -> None:
        """Give the same response to everything."""
        self.script = lambda request, n: say

    def once(self, *says: Say) -> None:
        """Give these responses first, good ones afterwards."""
        self.script = lambda request, n: says[n] if n < len(says) else good(request)

    def close(self) -> None:
        self.released.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture(scope="session")
def running_server() -> Iterator[Server]:
    scripted = Server()
    yield scripted
    scripted.close()


@pytest.fixture
def server(running_server: Server) -> Server:
    """The server as it is at first: good replies, nothing asked yet."""
    running_server.reset()
    return running_server


@pytest.fixture(scope="session")
def client(running_server: Server) -> openai.OpenAI:
    """One client for all tests: making one reads all certificates of the machine."""
    return openai.OpenAI(api_key="unused", base_url=running_server.url)


@pytest.fixture
def judge_of(server: Server, client: openai.OpenAI) -> Callable[..., OpenAIJudge]:
    """A judge that asks the scripted server, and waits next to nothing."""

    def make(**options: Any) -> OpenAIJudge:
        settings: dict[str, Any] = {"backoff": 0.001, "retries": 2, "probe": False, **options}
        if "api_key" in settings:
            return OpenAIJudge("scripted", base_url=server.url, **settings)
        return OpenAIJudge("scripted", client=client, **settings)

    return make


@pytest.fixture
def sample() -> dict[str, Any]:
    """One answer that the good replies judge as correct and grounded."""
    return {
        "query": "How long do refunds take?",
        "expected_answer": "7 days",
        "generated_answer": "Refunds take 7 days.",
        "context": [
            RetrievedChunk(id="d1", text="Card payments are refunded within 7 days."),
            RetrievedChunk(id="d2", text="Support is open from Monday to Friday."),
        ],
    }


@pytest.fixture(params=list(BAD))
def bad(request: pytest.FixtureRequest) -> Bad:
    """Each bad response in turn."""
    return BAD[request.param]


@pytest.fixture
def fatal(request: pytest.FixtureRequest, bad: Bad) -> bool:
    """Whether the bad response would come again for the next sample."""
    return any(BAD[name] is bad for name in FATAL)


@pytest.fixture(scope="session")
def says() -> SimpleNamespace:
    """The makers of responses, for tests (which cannot import from here)."""
    return SimpleNamespace(
        Say=Say,
        completion=completion,
        failure=failure,
        good=good,
        side_of=side_of,
        correct=CORRECT,
        supported=SUPPORTED,
        all_good=GOOD,
        bad=BAD,
    )
