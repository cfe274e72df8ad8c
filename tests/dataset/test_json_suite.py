"""The JSON test suite: what is JSON is read as Python reads it, what is not is refused clearly."""

from __future__ import annotations

import base64
import contextlib
import csv
import gzip
import json
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from ragdiag import DatasetError, DatasetLoadError, DatasetValidationError, load_dataset
from ragdiag.strict_json import parse

EXTRACT = Path(__file__).parents[1] / "data" / "json_test_suite" / "extract.json"

#: The standard leaves equal keys to the reader; ours refuses them, as it must not choose.
REPEATED_KEYS = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}


class Case(NamedTuple):
    file: str
    expectation: str
    content: bytes


def extract() -> list[Case]:
    items = json.loads(EXTRACT.read_text(encoding="utf-8"))
    return [
        Case(item["file"], item["expectation"], base64.b64decode(item["base64"])) for item in items
    ]


@pytest.fixture(scope="module")
def suite(shared_data) -> list[Case]:
    """The whole suite, read from its archive in memory: no file of it is unpacked."""
    folder = shared_data / "hostile" / "json_test_suite"
    with (folder / "manifest.csv").open(encoding="utf-8") as stream:
        expectations = {row["file"]: row["expectation"] for row in csv.DictReader(stream)}
    with tarfile.open(folder / "test_parsing.tar.gz") as archive:
        members = [member for member in archive if member.isfile()]
        contents = {Path(m.name).name: archive.extractfile(m).read() for m in members}
    assert len(contents) == 318
    return [Case(name, expectations[name], content) for name, content in contents.items()]


def check_parse(case: Case) -> None:
    """Accepted documents are equal to what Python's own reader gives."""
    try:
        document, problems = parse(case.content.decode("utf-8-sig"))
    except ValueError:
        assert case.expectation != "must-accept", case.file
        return
    if case.expectation == "must-reject":
        assert problems, case.file
    elif not problems:
        assert document == json.loads(case.content.decode("utf-8-sig")), case.file
    else:
        assert case.expectation != "must-accept" or case.file in REPEATED_KEYS, case.file


def check_file(case: Case, folder: Path) -> None:
    """No file of the suite is a dataset: each ends in an error of ours that says why."""
    path = folder / "case.json"
    path.write_bytes(case.content)
    with pytest.raises(DatasetError) as caught:
        load_dataset(path)
    if case.expectation == "must-accept":
        assert isinstance(caught.value, DatasetValidationError), case.file
        assert "a dataset is an object" in str(caught.value)
    assert str(caught.value).startswith(str(path))
    str(caught.value).encode()


def check_as_metadata(case: Case, folder: Path) -> None:
    """A document inside a dataset is kept, and survives saving, or is a fault."""
    path = folder / "case.json"
    head = (
        b'{"name": "d", "version": "1", "samples": [{"id": "q", "query": "?", '
        b'"expected_answer": "!", "relevant_chunk_ids": ["c"], "query_type": "factual", "field": '
    )
    path.write_bytes(head + case.content.removeprefix(b"\xef\xbb\xbf") + b"}]}")
    dataset = None
    with contextlib.suppress(DatasetError):
        dataset = load_dataset(path)
    if dataset is None:
        assert case.expectation != "must-accept" or case.file in REPEATED_KEYS, case.file
        return
    assert case.expectation != "must-reject", case.file
    expected = json.loads(case.content)
    assert dataset.samples[0].metadata == ({} if expected is None else {"field": expected})
    again = load_dataset(dataset.save(folder / "again.json"))
    assert again.samples == dataset.samples
    assert again == dataset


@pytest.mark.parametrize("case", extract(), ids=lambda case: case.file)
def test_extract(case, tmp_path):
    check_file(case, tmp_path)
    check_as_metadata(case, tmp_path)
    try:
        case.content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    check_parse(case)


def test_whole_suite_parses_as_expected(suite):
    for case in suite:
        try:
            case.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            assert case.expectation != "must-accept"
            continue
        check_parse(case)


def test_whole_suite_as_files(suite, tmp_path):
    for case in suite:
        check_file(case, tmp_path)


def test_whole_suite_as_metadata(suite, tmp_path):
    for case in suite:
        check_as_metadata(case, tmp_path)


def test_whole_suite_as_lines(suite, tmp_path):
    path = tmp_path / "cases.jsonl"
    for case in suite:
        path.write_bytes(case.content)
        with pytest.raises(DatasetError):
            load_dataset(path)


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe{\x00}\x00", "encoded as UTF-16, not UTF-8"),
        (b"\xff\xfe\x00\x00{\x00\x00\x00", "encoded as UTF-32, not UTF-8"),
        (b'"a"\n"\xe9"', "not UTF-8: byte 0xe9 at offset 5 (line 2); save it again as UTF-8"),
    ],
)
def test_encodings(tmp_path, suffix, content, message):
    path = tmp_path / f"golden{suffix}"
    path.write_bytes(content)

    with pytest.raises(DatasetLoadError) as caught:
        load_dataset(path)

    assert message in str(caught.value)


def test_a_byte_order_mark_is_accepted(write_json, sample):
    path = write_json(sample())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    assert load_dataset(path).name == "golden"


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress], ids=["plain", "gzip"])
def test_large_files_are_refused_unless_allowed(write_json, sample, pack):
    path = write_json(*map(sample, range(1000)))
    size = path.stat().st_size
    large = path.with_name("golden.json" if pack(b"") == b"" else "golden.json.gz")
    large.write_bytes(pack(path.read_bytes()))

    with pytest.raises(DatasetLoadError, match=rf"larger than {size - 1:,} bytes .*max_bytes="):
        load_dataset(large, max_bytes=size - 1)
    assert len(load_dataset(large, max_bytes=size)) == 1000


def test_the_limit_is_64_mib(tmp_path):
    path = tmp_path / "golden.json"
    with path.open("wb") as stream:
        stream.truncate(64 * 2**20 + 1)

    with pytest.raises(DatasetLoadError, match=r"larger than 67,108,864 bytes \(64 MiB\)"):
        load_dataset(path)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("NaN", "samples[0] (id 'q'): x: NaN is not a JSON number"),
        ("[-Infinity]", "samples[0] (id 'q'): x[0]: -Infinity is not a JSON number"),
        ("1e999", "samples[0] (id 'q'): x: 1e999 is too large for a number"),
        (
            "9" * 5000,
            "samples[0] (id 'q'): x: a whole number of 5,000 digits; at most 1,000 are read",
        ),
        (
            '{"a": 1, "b": {"c": 1, "c": 2}, "a": 1}',
            "samples[0] (id 'q'): x.a: this key is given twice or more in one object",
        ),
        ('1, "id": "q"', "samples[0] (id 'q'): id: this key is given twice"),
    ],
)
def test_what_python_would_read_in_silence(tmp_path, faults_of, value, fault):
    path = tmp_path / "golden.json"
    path.write_text('{"samples": [{"id": "q", "query": "?", "x": ' + value + "}]}")

    faults = faults_of(load_dataset, path, strict=False)

    assert faults[0].startswith(fault)


def test_bad_values_of_our_own_fields_are_reported_once(tmp_path, faults_of):
    path = tmp_path / "golden.json"
    path.write_text(
        '{"name": NaN, "query_types": [NaN], "samples": [{"id": NaN, "query": NaN, '
        '"expected_answer": NaN, "query_type": NaN, "relevant_chunk_ids": NaN, "grades": NaN}, '
        '{"id": "q2", "query": "?", "relevant_chunk_ids": [NaN, {"id": "a", "grade": NaN}], '
        '"expected_answer": "!", "query_type": "factual"}]}'
    )

    faults = faults_of(load_dataset, path)

    assert len(faults) == 10
    assert all(fault.endswith("NaN is not a JSON number") for fault in faults)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_nesting_bombs(tmp_path, opening):
    path = tmp_path / "golden.json"
    path.write_text(opening * 100_000)

    with pytest.raises(DatasetLoadError, match=r"nested deeper|not valid JSON"):
        load_dataset(path)


def test_truncated_file_names_the_place(write_json, sample):
    path = write_json(sample())
    path.write_text(path.read_text()[:-20])

    with pytest.raises(DatasetLoadError, match=r"not valid JSON at line 1, column \d+: "):
        load_dataset(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("[]", 'a dataset is an object {"name": ..., "version": ..., "samples": [...]}, got []'),
        ("{}", "got an object with the keys []"),
        ('{"samples": {}}', "got samples {}"),
        ("[" * 3 + "1" + "]" * 3, "got [[[1]]]"),
    ],
)
def test_other_documents(tmp_path, content, message):
    path = tmp_path / "golden.json"
    path.write_text(content)

    with pytest.raises(DatasetError) as caught:
        load_dataset(path)

    assert message in str(caught.value)
