"""Every error ragdiag raises on purpose.

::

    RagdiagError
    ├── SettingsError            (ValueError)   k, thresholds, options
    ├── DatasetError             (ValueError)
    │   ├── DatasetLoadError     (OSError)      the file cannot be read at all
    │   └── DatasetValidationError              it was read, and its content is at fault
    ├── PipelineError            (RuntimeError)
    │   └── PipelineLoadError                   the file does not give a usable pipeline
    ├── RunError                 (ValueError)   a recorded run is at fault
    │   ├── RunFormatError                      the file is not what it was said to be
    │   └── StoreMismatchError                  the store belongs to another run
    ├── StoreBusyError           (RuntimeError) another process writes to the store
    ├── QueryNotFoundError       (KeyError)     no such query id
    ├── ComparisonError          (ValueError)   the runs cannot be compared
    ├── ExportError              (OSError)      a file cannot be written
    ├── MissingDependencyError   (ImportError)  an optional package is not installed
    └── JudgeError               (RuntimeError)
        ├── JudgeAuthenticationError            the key is missing or refused
        ├── JudgeProviderError                  the server failed, or could not be reached
        ├── JudgeParseError                     the reply is not what was asked for
        └── JudgeRefusalError                   the model declined to judge

``EvaluationInterrupted`` is a ``KeyboardInterrupt``, not a ``RagdiagError``: code that catches
errors must not swallow the interrupt button.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragdiag.results import Results

__all__ = [
    "ComparisonError",
    "DatasetError",
    "DatasetLoadError",
    "DatasetValidationError",
    "EvaluationInterrupted",
    "ExportError",
    "JudgeAuthenticationError",
    "JudgeError",
    "JudgeParseError",
    "JudgeProviderError",
    "JudgeRefusalError",
    "MissingDependencyError",
    "PipelineError",
    "PipelineLoadError",
    "QueryNotFoundError",
    "RagdiagError",
    "RunError",
    "RunFormatError",
    "SettingsError",
    "StoreBusyError",
    "StoreMismatchError",
]


class RagdiagError(Exception):
    """Base of every error that ragdiag raises on purpose."""


class SettingsError(RagdiagError, ValueError):
    """An option has a value that makes no sense."""


class DatasetError(RagdiagError, ValueError):
    """Base of everything that is wrong with a golden dataset."""


class DatasetLoadError(DatasetError, OSError):
    """The dataset file is missing, unreadable or not in the format its name says."""

    # OSError formats two arguments as errno and strerror; the message is all we have.
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class DatasetValidationError(DatasetError):
    """The dataset was read, and its content is at fault.

    Attributes
    ----------
    faults : tuple of str
        One line for each fault found, in file order; all of them, not the first only.
    """

    def __init__(self, message: str, faults: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class PipelineError(RagdiagError, RuntimeError):
    """Base of everything that is wrong with a pipeline as a whole."""


class PipelineLoadError(PipelineError):
    """The file or object does not give a usable pipeline."""


class RunError(RagdiagError, ValueError):
    """A recorded run is at fault."""


class RunFormatError(RunError):
    """The file is not a run, is of an unknown version, or is damaged at a named place."""


class StoreMismatchError(RunError):
    """The store holds another run: the dataset, the pipeline or its code differ."""


class StoreBusyError(RagdiagError, RuntimeError):
    """Another process is writing to the store."""


class QueryNotFoundError(RagdiagError, KeyError):
    """No query of that id is in the results."""

    # KeyError shows the repr of its argument, quotes and escapes included.
    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ComparisonError(RagdiagError, ValueError):
    """The runs cannot be compared as they are; the message names the difference and the remedy."""


class ExportError(RagdiagError, OSError):
    """A file cannot be written where it was asked for."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class MissingDependencyError(RagdiagError, ImportError):
    """An optional package is needed and not installed; the message names the extra."""


class JudgeError(RagdiagError, RuntimeError):
    """Base of everything that can go wrong with a judge; it is never a score.

    Attributes
    ----------
    fatal : bool
        Whether the next sample would fail in the same way: a refused key, an exhausted quota.
    """

    fatal: bool = False


class JudgeAuthenticationError(JudgeError):
    """The key is missing or was refused."""

    fatal = True


class JudgeProviderError(JudgeError):
    """The provider could not be reached, is out of quota, or failed."""


class JudgeParseError(JudgeError):
    """The reply is not what was asked for: truncated, empty, or against the schema."""


class JudgeRefusalError(JudgeError):
    """The model declined to judge."""


class EvaluationInterrupted(KeyboardInterrupt):
    """The evaluation was interrupted; what had finished is in ``results``.

    Attributes
    ----------
    results : Results or None
        Everything that had finished when the interrupt came.
    """

    def __init__(self, message: str, results: Results | None = None) -> None:
        super().__init__(message)
        self.results = results
