"""Pipelines behind HTTP, against a server on loopback: two stages or one, faults, secrets."""

from __future__ import annotations

import http.server
import json
import pickle
import socket
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ragdiag import HttpPipeline, evaluate
from ragdiag.errors import PipelineError, PipelineLoadError, SettingsError
from ragdiag.fingerprint import pipeline_digest
from ragdiag.interop import endpoint
from ragdiag.pipeline import stages_of, to_chunks

SECRET = "wombat-battery-staple"


class Server:
    """Answers by path with what a test put there, and remembers what it was asked."""

    def __init__(self) -> None:
        self.replies: dict[str, list[tuple[int, Any, dict[str, str]]]] = {}
        self.asked: list[tuple[str, str, Any, dict[str, str]]] = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                server.asked.append((self.command, self.path, body, dict(self.headers)))
                status, reply, headers = server.reply_to(self.path.partition("?")[0], body)
                content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = answer

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.place = f"127.0.0.1:{self._server.server_port}"

    def reply_to(self, path: str, body: Any) -> tuple[int, Any, dict[str, str]]:
        replies = self.replies[path]
        status, reply, headers = replies.pop(0) if len(replies) > 1 else replies[0]
        return status, reply(body) if callable(reply) else reply, headers

    def says(self, path: str, *replies: Any) -> str:
        """Set what is said at a path, one after the other, and return the address."""
        self.replies[path] = [
            each if isinstance(each, tuple) else (200, each, {}) for each in replies
        ]
        return f"http://{self.place}{path}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="module")
def listening() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(listening: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(endpoint, "PAUSES", (0.0,))
    listening.asked.clear()
    return listening


@pytest.fixture
def search(ranked: Callable[[str], list[str]], texts: dict[str, str]) -> Callable[[Any], Any]:
    def found(body: Any) -> Any:
        names = ranked(body["query"])
        return {"chunks": [{"id": name, "text": texts[name], "score": 0.5} for name in names]}

    return found


def test_two_endpoints(server: Server, run: Any, search: Any, texts: dict[str, str]) -> None:
    url = server.says("/search", search)
    answer = server.says("/answer", lambda body: {"answer": body["chunks"][0]["text"]})
    results = run(HttpPipeline(url, generate_url=answer, version="3"), workers=2)
    assert results.name == f"{server.place}/search"
    assert results.frame["category"].tolist() == ["PASS", "PASS"]
    assert results.frame["answer"][0] == texts["refunds"]
    assert results.frame[["retrieval_ms", "generation_ms"]].notna().all(axis=None)
    method, _, body, headers = next(each for each in server.asked if each[1] == "/answer")
    assert (method, headers["Content-Type"]) == ("POST", "application/json")
    assert body["chunks"][0].keys() == {"id", "text", "score"}


def test_an_answer_in_one_step(server: Server, run: Any, search: Any) -> None:
    url = server.says("/ask", lambda body: {"answer": "Seven days.", **search(body)})
    results = run(HttpPipeline(url, one_step=True, name="service"))
    assert results.name == "service"
    assert results.frame["answer"].tolist() == ["Seven days."] * 2
    assert results.frame["retrieval_ms"].isna().all()
    pair = HttpPipeline(
        url, one_step=True, response=lambda reply: (reply["answer"], reply["chunks"])
    )
    assert run(pair).frame["category"].tolist() == ["PASS", "PASS"]


def test_a_request_of_its_own_and_paths_into_the_reply(server: Server) -> None:
    hits = [{"_id": 7, "_source": {"body": "Seven days."}, "_score": 0.5, "meta": {"nr": "n"}}]
    url = server.says("/_search", {"hits": {"hits": hits}, "out": [{"text": "yes"}]})
    pipeline = HttpPipeline(
        url,
        request={"match": [{"body": "about {query}"}], "size": 10},
        response={"chunks": "hits.hits", "id": "_id", "text": "_source.body", "score": "_score"},
        generate_url=url,
        generate_request={"q": "{query}"},
        generate_response="out.0.text",
    )
    chunk = to_chunks(pipeline.retrieve("refunds"))[0]
    assert (chunk.id, chunk.text, chunk.score) == ("7", "Seven days.", 0.5)
    assert server.asked[0][2] == {"match": [{"body": "about refunds"}], "size": 10}
    assert stages_of(pipeline).generate("refunds", []) == "yes"
    assert server.asked[1][2] == {"q": "refunds"}
    ids = {"chunks": "hits.hits", "id": "meta.nr"}
    assert pipeline_chunk(HttpPipeline(url, response=ids)) == ("n", "")
    texts = {"chunks": "hits.hits", "text": "_source.body"}
    made = pipeline_chunk(HttpPipeline(url, response=texts, id_from="text"))
    assert made[0].startswith("text-")


def pipeline_chunk(pipeline: HttpPipeline) -> tuple[str, str]:
    chunk = to_chunks(pipeline.retrieve("q"))[0]
    return chunk.id, chunk.text


def test_functions_make_the_request_and_read_the_reply(server: Server) -> None:
    url = server.says("/any", {"found": [{"key": "a", "text": "t"}]})
    pipeline = HttpPipeline(
        url,
        request=lambda query: [query],
        response=lambda reply: reply["found"],
        id_from="key",
        generate_url=url,
        generate_request=lambda query, chunks: {"n": len(chunks)},
        generate_response=lambda reply: reply["found"][0]["text"],
    )
    assert pipeline_chunk(pipeline) == ("a", "t")
    assert stages_of(pipeline).generate("q", []) == "t"
    assert [each[2] for each in server.asked] == [["q"], {"n": 0}]


def test_the_question_in_the_address_is_a_get(server: Server) -> None:
    url = server.says("/find", [{"id": "a", "text": "t"}])
    pipeline = HttpPipeline(f"{url}?q={{query}}&k=5")
    assert pipeline_chunk(pipeline) == ("a", "t")
    pipeline.retrieve("a&b=ü {query}")
    method, path, body, _ = server.asked[1]
    assert (method, body) == ("GET", None)
    asked = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
    assert asked == {"q": ["a&b=ü {query}"], "k": ["5"]}


def test_failures_that_may_pass_are_tried_again(server: Server) -> None:
    good = [{"id": "a", "text": "t"}]
    url = server.says("/busy", (503, "busy", {}), (429, "", {"Retry-After": "0"}), good)
    assert pipeline_chunk(HttpPipeline(url)) == ("a", "t")
    assert len(server.asked) == 3
    url = server.says("/down", (500, {"detail": "no index"}, {}))
    with pytest.raises(ConnectionError, match=r'/down: HTTP 500 .*: {"detail": "no index"}'):
        HttpPipeline(url, retries=1).retrieve("q")
    assert len(server.asked) == 5
    # Nobody waits for a server that asks for half an hour.
    url = server.says("/later", (429, "", {"Retry-After": "1800"}))
    with pytest.raises(ConnectionError, match="/later: HTTP 429"):
        HttpPipeline(url, retries=5).retrieve("q")
    assert len(server.asked) == 6


def test_what_would_fail_again_is_not_repeated(server: Server, dataset: Any) -> None:
    url = server.says("/gone", (404, b"x" * 5000, {}))
    frame = evaluate(HttpPipeline(url), dataset, progress=False, retries=3).frame
    assert len(server.asked) == 2
    assert frame["category"].tolist() == ["UNKNOWN"] * 2
    error = frame["error"][0]
    assert f"retrieval failed: PipelineError: {url}: HTTP 404 Not Found: xxx" in error
    assert len(error) < 500


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (b"<html>Sign in</html>", "the reply is no JSON: <html>Sign in</html>"),
        (b"[" * 100_000, "the reply is no JSON"),
        (3, "expected a list of chunks, got 3"),
        ({"other": []}, "expected documents under one of 'context', .*got a dict with 'other'"),
        ((302, "", {"Location": "http://u:p@127.0.0.1/login?token=abc"}), "moved to http://127.0."),
    ],
)
def test_replies_that_are_none(server: Server, reply: Any, message: str) -> None:
    pipeline = HttpPipeline(server.says("/odd", reply))
    with pytest.raises(PipelineError, match=message) as caught:
        pipeline.retrieve("q")
    assert "token" not in str(caught.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"chunks": "a.b"}, r"nothing at 'a\.b': no 'b' in the keys 'c'"),
        ({"chunks": "list.2"}, r"nothing at 'list\.2': no '2' in \[1\]"),
    ],
)
def test_paths_that_lead_nowhere(server: Server, response: Any, message: str) -> None:
    url = server.says("/paths", {"a": {"c": 1}, "list": [1]})
    with pytest.raises(PipelineError, match=message):
        HttpPipeline(url, response=response).retrieve("q")


def test_an_answer_that_is_no_text(server: Server) -> None:
    url = server.says("/answers", {"answer": 3})
    pipeline = HttpPipeline(url, generate_url=url)
    with pytest.raises(PipelineError, match="expected the answer as text"):
        stages_of(pipeline).generate("q", [])


def test_a_reply_that_never_ends_is_cut(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MAX_REPLY", 10)
    url = server.says("/large", list(range(100)))
    with pytest.raises(PipelineError, match="larger than 10 bytes"):
        HttpPipeline(url).retrieve("q")


def test_nobody_listens_or_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        pipeline = HttpPipeline(f"http://127.0.0.1:{port}/x", timeout=0.05, retries=0)
        with pytest.raises(ConnectionError, match=r"/x: no reply within 0\.05 s"):
            pipeline.retrieve("q")
    with pytest.raises(ConnectionError, match=rf"http://127\.0\.0\.1:{port}/x: cannot be reached"):
        pipeline.retrieve("q")


def test_secrets_are_sent_and_never_told(server: Server, dataset: Any) -> None:
    echo = server.says("/echo", (401, f"bad key {SECRET}!", {}))
    address = echo.replace("http://", "http://me:pa%20ssword@") + f"?key={SECRET}&q={{query}}"
    pipeline = HttpPipeline(address, headers={"X-Thing": f"Key {SECRET}"}, retries=0)
    assert pipeline.name == f"{server.place}/echo"
    run = evaluate(pipeline, dataset, progress=False).run
    assert server.asked[0][3]["X-Thing"] == f"Key {SECRET}"
    assert server.asked[0][3]["Authorization"] == "Basic bWU6cGEgc3N3b3Jk"
    error = run.outcomes["error"][0]
    assert "HTTP 401" in error
    assert "bad key [redacted]!" in error
    assert "ssword" not in error
    assert SECRET not in run.outcomes.to_json() + str(dict(run.info))


def test_a_failure_holds_no_request(server: Server) -> None:
    pipeline = HttpPipeline(server.says("/no", (403, "", {})), headers={"X-Api-Key": SECRET})
    with pytest.raises(PipelineError) as caught:
        pipeline.retrieve("q")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "ftp://host/x"}, "begins with http:// or https://, got 'ftp://host/x'"),
        ({"url": "file:///etc/passwd"}, "begins with http"),
        ({"url": "host/x"}, "begins with http"),
        ({"url": "http://host:x/"}, "is no address"),
        ({"url": 3}, "3 is no address"),
        ({"headers": {"X-Key": "a\nb"}}, "header 'X-Key': its value must be printable"),
        ({"request": {"size": 3}}, "no '{query}' in it for the question"),
        ({"response": {"nodes": "x"}}, "response= has 'nodes'; its paths are 'chunks', 'id'"),
        ({"generate_request": {}}, "need generate_url="),
        ({"generate_url": "http://h", "one_step": True}, "with one_step=True"),
    ],
)
def test_what_is_no_pipeline(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PipelineLoadError, match=message) as caught:
        HttpPipeline(**{"url": "http://host/x", **arguments})
    assert "a\nb" not in str(caught.value)


def test_odd_options() -> None:
    with pytest.raises(SettingsError, match="timeout must be above 0"):
        HttpPipeline("http://host", timeout=0)
    assert HttpPipeline("http://[::1]:80/x", name="six").name == "six"
    assert HttpPipeline("http://[::1]:80/x").name == "[::1]:80/x"


def test_it_travels_and_its_digest_tells_addresses_apart(server: Server) -> None:
    url = server.says("/travel", [{"id": "a", "text": "t"}])
    pipeline = HttpPipeline(url, headers={"X-Key": SECRET})
    assert pipeline_chunk(pickle.loads(pickle.dumps(pipeline))) == ("a", "t")
    digest = pipeline_digest(pipeline)
    assert digest == pipeline_digest(HttpPipeline(url, headers={"X-Key": "another key"}))
    assert digest != pipeline_digest(HttpPipeline(f"{url}2"))
    assert digest != pipeline_digest(HttpPipeline(url, request={"q": "{query}"}))
