"""Fixtures that every part of the tests may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A machine that does many things at once must not make a test fail; what fails in CI must fail
# again when it is looked at.
settings.register_profile(
    "ragdiag",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("ragdiag")

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The developers' data folder beside the repository; tests skip where it is absent."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not (folder / "README.md").is_file():
        reason = "the developers' data folder (../shared/data) is not here"
        if os.environ.get("RAGDIAG_REQUIRE_DATA") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY
