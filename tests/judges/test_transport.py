"""Pauses and the gate, without a server."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ragdiag.errors import JudgeError, JudgeProviderError
from ragdiag.judges.transport import Failure, Gate, retry_after, send


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "tomorrow"}, 0.0),
        ({}, 0.0),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers, 429) == seconds


def test_retry_after_may_be_a_date():
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < retry_after({"retry-after": later}) <= 30


def test_an_open_gate_costs_nothing_and_a_longer_pause_stays():
    gate = Gate()
    gate.wait()
    gate.pause(100.0)
    until = gate._open_at
    gate.pause(1.0)
    assert gate._open_at == until
    gate.cancel()
    with pytest.raises(JudgeProviderError, match="cancelled"):
        gate.wait()


def test_pauses_double_and_are_bounded(monkeypatch):
    waits = []
    gate = Gate()
    monkeypatch.setattr(gate, "wait", lambda seconds=0.0: waits.append(seconds))

    def fail():
        raise OSError

    with pytest.raises(JudgeError, match="no"):
        send(fail, lambda e: Failure(JudgeError("no"), True), gate, retries=8, backoff=0.5)
    pauses = [seconds for seconds in waits if seconds]
    assert len(pauses) == 8
    for attempt, seconds in enumerate(pauses):
        whole = min(8.0, 0.5 * 2**attempt)
        assert 0.75 * whole <= seconds <= whole


def test_a_judges_own_error_is_final():
    calls = []

    def fail():
        calls.append(time.monotonic())
        raise JudgeError("known")

    with pytest.raises(JudgeError, match="known"):
        send(fail, lambda e: Failure(JudgeError("x"), True), Gate(), retries=3, backoff=0.0)
    assert len(calls) == 1
