"""What a gate found: pass or fail with reasons, for people, pull requests and CI servers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from ragdiag.files import write_bytes, write_text

__all__ = ["LISTED_IDS", "GateCheck", "GateResult", "State"]

State = Literal["passed", "failed", "missing"]

#: Ids that a message lists before it counts the rest.
LISTED_IDS = 10
#: What a terminal exits with.
EXIT_PASSED, EXIT_FAILED = 0, 3
#: File to which a GitHub job's summary is appended.
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One thing that was checked.

    Attributes
    ----------
    name : str
        With its threshold: ``min_recall=0.8``.
    state : str
        ``passed``, ``failed`` or ``missing`` (there was not enough evidence).
    detail : str
        What was found.
    """

    name: str
    state: State
    detail: str


@dataclass(frozen=True)
class GateResult:
    """Whether a candidate may replace its baseline; true in a condition if it may.

    Attributes
    ----------
    baseline, candidate : str
        Names.
    checks : tuple of GateCheck
        All of them, in the order they were made.
    sentence : str
        What the comparison proves.
    regressed : tuple of str
        Ids of the queries that are worse.
    allow_missing : bool
        Whether missing evidence was let through.
    """

    baseline: str
    candidate: str
    checks: tuple[GateCheck, ...]
    sentence: str
    regressed: tuple[str, ...] = field(default=(), repr=False)
    allow_missing: bool = False

    @property
    def passed(self) -> bool:
        """Whether every check passed (or lacked evidence, where that was allowed)."""
        return not self.reasons

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it failed, a line each."""
        bad = ("failed",) if self.allow_missing else ("failed", "missing")
        return tuple(f"{c.name} {c.state}: {c.detail}" for c in self.checks if c.state in bad)

    @property
    def exit_code(self) -> int:
        """0, or 3 where the gate failed."""
        return EXIT_PASSED if self.passed else EXIT_FAILED

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        lines = [f"{self._title}. {self.sentence}."]
        lines += [f"  {check.state:<8}{check.name}: {check.detail}" for check in self.checks]
        return "\n".join(lines)

    @property
    def _title(self) -> str:
        word = "passed" if self.passed else "failed"
        return f"Gate {word}: {self.candidate} against {self.baseline}"

    def to_junit(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the checks as JUnit XML, one test case each, and write it where a path is given.

        Raises
        ------
        ExportError
            The file cannot be written.
        """
        bad = [c for c in self.checks if c.state == "failed"]
        missing = [c for c in self.checks if c.state == "missing"]
        suite = ElementTree.Element(
            "testsuite",
            name=_xml_text(f"ragdiag gate: {self.candidate} against {self.baseline}"),
            tests=str(len(self.checks)),
            failures=str(len(bad) + (0 if self.allow_missing else len(missing))),
            errors="0",
            skipped=str(len(missing) if self.allow_missing else 0),
        )
        for each in self.checks:
            case = ElementTree.SubElement(
                suite, "testcase", classname="ragdiag.gate", name=_xml_text(each.name)
            )
            if each.state == "missing" and self.allow_missing:
                ElementTree.SubElement(case, "skipped", message=_xml_text(each.detail))
            elif each.state != "passed":
                ElementTree.SubElement(
                    case, "failure", type=each.state, message=_xml_text(each.detail)
                )
        output = ElementTree.SubElement(suite, "system-out")
        output.text = _xml_text("\n".join([str(self), *self._regressed_lines()]))
        ElementTree.indent(suite)
        data: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
        if path is not None:
            write_bytes(Path(path), data + b"\n")
        return data.decode("utf-8")

    def _regressed_lines(self) -> list[str]:
        return [f"regressed: {query_id}" for query_id in self.regressed]

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the checks as Markdown for a pull request, and write it where a path is given.

        Raises
        ------
        ExportError
            The file cannot be written.
        """
        from ragdiag.display.clean import clean
        from ragdiag.display.markdown import escape as escape_clean

        def escape(text: str) -> str:
            return escape_clean(clean(text))

        lines = [f"**{escape(self._title)}**", "", f"{escape(self.sentence)}.", ""]
        lines += ["| Check | State | Found |", "|:--|:--|:--|"]
        lines += [f"| {escape(c.name)} | {c.state} | {escape(c.detail)} |" for c in self.checks]
        if self.regressed:
            shown = ", ".join(escape(each) for each in self.regressed[:LISTED_IDS])
            rest = len(self.regressed) - LISTED_IDS
            more = f" and {rest:,} more" if rest > 0 else ""
            lines += ["", f"{len(self.regressed):,} regressed: {shown}{more}"]
        text = "\n".join(lines) + "\n"
        if path is not None:
            write_text(Path(path), text)
        return text

    def append_step_summary(self, environment: Mapping[str, str] | None = None) -> bool:
        """Append the Markdown to a GitHub job's summary; return whether there is one.

        Parameters
        ----------
        environment : mapping, optional
            Where ``GITHUB_STEP_SUMMARY`` is looked up; the process's own by default.
        """
        path = (os.environ if environment is None else environment).get(STEP_SUMMARY)
        if not path:
            return False
        with open(path, "a", encoding="utf-8") as summary:
            summary.write(self.to_markdown() + "\n")
        return True


def _xml_text(text: str) -> str:
    """Return `text` without the characters that XML 1.0 cannot hold, references included."""
    return "".join(
        c
        if c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000"
        else "\ufffd"
        for c in text
    )
