"""What a judged run costs beside its calls.

*Wall*: 200 samples, judged by two requests each with 16 workers and a store, on a loopback server
that takes 50 ms, against a bare thread pool that makes the same calls of the openai package; at
most 1.1 is wanted. *Ideal* is the latency alone. *Processor*: what recording one result costs
against one call of the package; less than a tenth is wanted. *Resume*: 10,000 finished and judged
samples gone on with, against loading the same file.

With RAGDIAG_PUBLISHED naming a Python that has ragdiag 0.1.1, its Evaluator runs on that server.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pandas as pd
from measuring import milliseconds, print_table, processor_seconds

import ragdiag
from ragdiag.harness import execute
from ragdiag.judges.prompts import correctness_prompt, groundedness_prompt

LATENCY = 0.05
WORKERS = 16
TEXT = "Card payments are refunded within 7 days. " * 8
ANSWER = "Refunds take 7 days."
GROUNDED = {
    "claims": [
        {
            "claim": ANSWER,
            "chunk": "C1",
            "quote": "Card payments are refunded within 7 days.",
            "verdict": "supported",
        }
    ],
    "confidence": 0.8,
}
CORRECT = {
    "missing_facts": [],
    "wrong_facts": [],
    "reason": "same fact",
    "verdict": "correct",
    "confidence": 0.9,
}


def completion(content: dict[str, Any]) -> bytes:
    body = json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": json.dumps(content)},
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
    ).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def serve(port: Any) -> None:
    """Answer chat completions after the latency, in a process of its own."""
    grounded, correct = completion(GROUNDED), completion(CORRECT)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                await asyncio.sleep(LATENCY)
                writer.write(grounded if b"GroundednessReply" in body else correct)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def make_dataset(size: int) -> ragdiag.GoldenDataset:
    ids = [f"q{i}" for i in range(size)]
    frame = pd.DataFrame(
        {
            "query_id": ids,
            "query": [f"How long do refunds take in case {i}?" for i in range(size)],
            "expected_answer": "7 days",
            "relevant_chunk_ids": [["refunds"]] * size,
        }
    )
    return ragdiag.GoldenDataset.from_frame(frame)


pipeline = ragdiag.as_pipeline(
    retrieve=lambda query: [(f"refunds-{i}", TEXT, 1.0 / (i + 1)) for i in range(5)],
    generate=lambda query, chunks: ANSWER,
)


def bare(base_url: str, dataset: ragdiag.GoldenDataset) -> None:
    """Make the calls of a judged run and nothing else."""
    client = openai.OpenAI(api_key="none", base_url=base_url, max_retries=0)
    chunks = [(f"C{i + 1}", TEXT) for i in range(5)]

    def ask(query: str) -> None:
        for prompt in (
            groundedness_prompt(query, chunks, ANSWER),
            correctness_prompt(query, "7 days", ANSWER),
        ):
            client.chat.completions.parse(
                model="scripted",
                messages=[
                    {"role": "system", "content": prompt.system},
                    {"role": "user", "content": prompt.user},
                ],
                response_format=prompt.schema,
                temperature=0.0,
            )

    with client, ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(ask, dataset.frame["query"]))


def judged(base_url: str, dataset: ragdiag.GoldenDataset, folder: Path) -> None:
    """Do the same as a run that is recorded."""
    judge = ragdiag.OpenAIJudge(model="scripted", base_url=base_url, probe=False)
    store = folder / f"{time.monotonic_ns()}.jsonl"
    options = {"judge_workers": WORKERS, "store": store, "progress": False}
    run = execute(pipeline, dataset, judge=judge, **options)
    assert run.verdicts["grounded"].all(), run.verdicts["grounded_error"].iloc[0]
    assert run.verdicts["answer_correct"].all()


PUBLISHED = """
import sys
from ragdiag.judges import OpenAIJudge
from ragdiag.models import GoldenDataset, QuerySample, RetrievedChunk
from ragdiag.pipeline import Pipeline
from ragdiag.runner import Evaluator
size, text, answer = int(sys.argv[1]), sys.argv[2], sys.argv[3]
class Fixed(Pipeline):
    def retrieve(self, query):
        return [RetrievedChunk(id=f"refunds-{i}", text=text, score=1.0) for i in range(5)]
    def generate(self, query, chunks):
        return answer
samples = [QuerySample(id=f"q{i}", query=f"How long in case {i}?", expected_answer="7 days",
                       relevant_chunk_ids=["refunds-0"], query_type="factual") for i in range(size)]
dataset = GoldenDataset(name="d", version="1", description="d", samples=samples)
Evaluator(judge=OpenAIJudge(model="scripted", api_key="none")).evaluate(Fixed(), dataset)
"""


def published(base_url: str, size: int) -> float:
    """Return the seconds that the published release takes, one call after the other."""
    start = time.perf_counter()
    subprocess.run(
        [os.environ["RAGDIAG_PUBLISHED"], "-I", "-c", PUBLISHED, str(size), TEXT, ANSWER],
        check=True,
        env={**os.environ, "OPENAI_BASE_URL": base_url},
    )
    return time.perf_counter() - start


def measure_wall(base_url: str, folder: Path, quick: bool) -> float:
    """Print wall times in turns and return the processor time of one SDK call."""
    size = 64 if quick else 200
    dataset = make_dataset(size)
    ideal = LATENCY * 2 * size / WORKERS
    contenders: dict[str, Callable[[], None]] = {
        "bare thread pool": lambda: bare(base_url, dataset),
        "ragdiag": lambda: judged(base_url, dataset, folder),
    }
    turns: dict[str, list[float]] = {name: [] for name in contenders}
    processor: list[float] = []
    for turn in range(3 if quick else 6):
        for name, contender in contenders.items():
            start, used = time.perf_counter(), time.process_time()
            contender()
            if turn:  # the first connects, imports and compiles schemas
                turns[name].append(time.perf_counter() - start)
                if name == "bare thread pool":
                    processor.append((time.process_time() - used) / (2 * size))
    median = {name: statistics.median(times) for name, times in turns.items()}
    if os.environ.get("RAGDIAG_PUBLISHED"):
        median["ragdiag 0.1.1, one by one"] = published(base_url, size)
    base = median["bare thread pool"]
    print_table(
        [f"{size} judged samples", "wall", "ratio to bare", "ratio to ideal"],
        [
            [name, milliseconds(seconds), f"{seconds / base:.2f}", f"{seconds / ideal:.2f}"]
            for name, seconds in median.items()
        ],
    )
    return statistics.median(processor)


class Instant(ragdiag.Judge):
    def evaluate(self, *args: Any, **kwargs: Any) -> ragdiag.JudgeResult:
        return ragdiag.JudgeResult(answer_correct=True, grounded=True, confidence=0.9, reason="so")


def measure_processor(folder: Path, call: float, quick: bool) -> None:
    """Print what one recorded result costs: retrieval, generation and reply of each sample."""
    size = 500 if quick else 2000
    dataset = make_dataset(size)

    def recorded() -> None:
        store = folder / f"{time.monotonic_ns()}.jsonl"
        options = {"judge_workers": WORKERS, "store": store, "progress": False}
        execute(pipeline, dataset, judge=Instant(), workers=4, **options)

    seconds = processor_seconds({"recorded": recorded}, 3)["recorded"]
    each = seconds / (3 * size)
    print_table(
        ["processor time", "each", "share of a call"],
        [
            ["one call of openai", milliseconds(call), "1"],
            ["one recorded result", milliseconds(each), f"{each / call:.3f}"],
        ],
    )


def measure_resume(folder: Path, quick: bool) -> None:
    """Print what a finished run costs when it is called again."""
    size = 1000 if quick else 10_000
    dataset = make_dataset(size)
    store = folder / "finished.jsonl"

    def again() -> ragdiag.Run:
        return execute(pipeline, dataset, judge=Instant(), store=store, progress=False)

    again()
    contenders = {"load_run": lambda: ragdiag.load_run(store), "resume": again}
    seconds = processor_seconds(contenders, 3)
    print_table(
        [f"{size:,} finished samples", "processor time", "ratio to load_run"],
        [[n, milliseconds(s), f"{s / seconds['load_run']:.2f}"] for n, s in seconds.items()],
    )


def run(quick: bool) -> None:
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    server = context.Process(target=serve, args=(port,), daemon=True)
    server.start()
    try:
        base_url = f"http://127.0.0.1:{port.get(timeout=60)}/v1"
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            call = measure_wall(base_url, folder, quick)
            print()
            measure_processor(folder, call, quick)
            print()
            measure_resume(folder, quick)
    finally:
        server.kill()
        server.join()


if __name__ == "__main__":
    run("--quick" in sys.argv)
