"""Each format: what it holds arrives as it is, and what is wrong in it has its place."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragdiag import DatasetLoadError, DatasetValidationError, GoldenDataset, load_dataset


def load_error(path, **options) -> str:
    with pytest.raises(DatasetLoadError) as caught:
        load_dataset(path, **options)
    assert str(caught.value).startswith(str(path))
    return str(caught.value)


class TestFiles:
    def test_missing(self, tmp_path):
        for name in ("none.json", "none.parquet", "none", "none.txt"):
            assert "there is no such file" in load_error(tmp_path / name)

    def test_unknown_kind(self, tmp_path):
        path = tmp_path / "golden.xlsx"
        path.touch()

        assert "or a BEIR folder, got '.xlsx'" in load_error(path)

    def test_not_a_regular_file(self, tmp_path):
        for name in ("golden.json", "golden.parquet"):
            path = tmp_path / name
            try:
                path.symlink_to("/dev/null")
            except OSError:
                pytest.skip("this system has no such links")
            assert "not a regular file" in load_error(path)

    def test_broken_gzip(self, tmp_path):
        path = tmp_path / "golden.json.gz"
        path.write_bytes(gzip.compress(b"{}")[:-4])

        assert "cannot be read" in load_error(path)

    def test_a_split_is_for_folders(self, tmp_path):
        path = tmp_path / "golden.json"

        assert "split='test' is for BEIR folders" in load_error(path, split="test")


class TestJson:
    def test_name_and_version_default_to_the_stem_and_unversioned(self, tmp_path, sample):
        path = tmp_path / "support.v2.json"
        path.write_text(json.dumps({"samples": [sample()]}))

        dataset = load_dataset(path)

        assert (dataset.name, dataset.version) == ("support.v2", "unversioned")
        assert dataset.description is None

    def test_extra_fields_become_columns_with_a_type(self, write_json, sample):
        path = write_json(
            sample(1, team="a", hard=True, hops=2, cost=1.5, tags=["x"], mixed=1, big=2**80),
            sample(2, cost=2, mixed="a", empty=None),
            ignored="the outermost object may hold more",
        )

        frame = load_dataset(path).frame

        kinds = {name: str(frame[name].dtype) for name in frame.columns[4:]}
        assert kinds == {
            "team": "string",
            "hard": "boolean",
            "hops": "Int64",
            "cost": "float64",
            "tags": "object",
            "mixed": "object",
            "big": "object",
            "empty": "string",
        }
        assert frame["hops"].isna().tolist() == [False, True]
        assert frame["big"][0] == 2**80


class TestJsonLines:
    def test_loads(self, tmp_path):
        path = tmp_path / "golden.jsonl"
        path.write_bytes('{"id": 1, "query": "a\u2028b"}\r\n\n{"id": "é", "query": "c"}'.encode())

        dataset = load_dataset(path)

        assert dataset.frame["query_id"].tolist() == ["1", "é"]
        assert [s.query for s in dataset.samples] == ["a\u2028b", "c"]

    def test_every_bad_line_is_a_fault(self, tmp_path, faults_of):
        path = tmp_path / "golden.jsonl"
        path.write_text(
            '{"id": "q1", "query": "a"}\n'
            "{oops}\n"
            "[1]\n"
            '{"id": "q2", "query": "b", "x": NaN}\n'
            '{"id": "q1", "query": ""}\n'
        )

        assert faults_of(load_dataset, path) == (
            "line 2: not valid JSON at column 2: Expecting property name enclosed in double quotes",
            "samples[1], line 3: must be an object, got [1]",
            "samples[1], line 4 (id 'q2'): x: NaN is not a JSON number",
            "samples[2], line 5 (id 'q1'): id: 'q1' is already the id of samples[0], line 1; "
            "every sample needs its own",
            "samples[2], line 5 (id 'q1'): query: must not be empty, got ''",
        )

    def test_an_empty_file_holds_no_sample(self, tmp_path, faults_of):
        path = tmp_path / "golden.jsonl"
        path.touch()

        assert "there is no sample in it" in faults_of(load_dataset, path)[0]


class TestCsv:
    def write(self, tmp_path, text):
        path = tmp_path / "golden.csv"
        path.write_bytes(text.encode("utf-8"))
        return path

    def test_everything_is_text(self, tmp_path):
        path = self.write(
            tmp_path,
            "id,query,expected_answer,note\r\n001,NA,1e5,\r\nNA,null,nan,TRUE\r\n\r\n1e5,007,,-0\r\n",
        )

        frame = load_dataset(path).frame

        assert frame["query_id"].tolist() == ["001", "NA", "1e5"]
        assert frame["query"].tolist() == ["NA", "null", "007"]
        assert frame["expected_answer"].isna().tolist() == [False, False, True]
        assert frame["expected_answer"].tolist()[:2] == ["1e5", "nan"]
        assert frame["note"].isna().tolist() == [True, False, False]
        assert frame["note"].tolist()[1:] == ["TRUE", "-0"]

    def test_list_cells_are_json(self, tmp_path):
        path = self.write(
            tmp_path,
            "id,query,labels,grades\n"
            'q1,a,"[""c,1"", ""c2""]",\n'
            'q2,b,"[{""id"": ""c2"", ""grade"": 2}]",\n'
            'q3,"c\nc","[""c3""]","{""c3"": 3}"\n'
            "q4,d,,\n",
        )

        dataset = load_dataset(path, rename={"labels": "relevant_chunk_ids"})

        assert dataset.qrels["chunk_id"].tolist() == ["c,1", "c2", "c2", "c3"]
        assert dataset.qrels["grade"].tolist() == [1, 1, 2, 3]
        assert dataset.samples[3].relevant_chunk_ids == []

    def test_faults_have_their_line(self, tmp_path, faults_of):
        path = self.write(
            tmp_path,
            "id,query,relevant_chunk_ids,grades\n"
            'q1,"two\nlines",c1,\n'
            "q2,,\"['c1']\",x\n"
            "q3,a,b,c,d\n"
            'q4,a,"[NaN]",\n',
        )

        assert faults_of(load_dataset, path) == (
            "samples[0], line 3: relevant_chunk_ids: must be a list as JSON, "
            '["chunk-1", "chunk-2"], got \'c1\'',
            "samples[1], line 4: relevant_chunk_ids: must be a list as JSON, "
            '["chunk-1", "chunk-2"], got "[\'c1\']"',
            "samples[1], line 4: grades: must be an object as JSON, {\"chunk-1\": 2}, got 'x'",
            "samples[1], line 4 (id 'q2'): query: is missing; every sample needs one",
            "line 5: 5 cells where the header has 4; a text with a comma needs quotes",
            "samples[2], line 6: relevant_chunk_ids[0]: NaN is not a JSON number",
        )

    def test_columns_of_one_name(self, tmp_path, faults_of):
        path = self.write(tmp_path, "id,query,query\nq1,a,b\n")

        assert faults_of(load_dataset, path) == ("line 1: two columns are called 'query'",)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "it is empty"),
            ("id;query\nq1;a\n", "one column 'id;query'; cells are separated by commas"),
            ('id,query\nq1,"a\n', "not valid CSV at line 2: unexpected end of data"),
            ('id,query\nq1,"a"b\n', "not valid CSV at line 2: ',' expected after '\"'"),
        ],
    )
    def test_what_is_not_csv(self, tmp_path, text, message):
        assert message in load_error(self.write(tmp_path, text))

    def test_cells_may_be_long(self, tmp_path):
        path = self.write(tmp_path, f"id,query\nq1,{'x' * 200_000}\n")

        assert len(load_dataset(path).samples[0].query) == 200_000


class TestParquet:
    def test_loads(self, tmp_path):
        path = tmp_path / "golden.parquet"
        pq.write_table(
            pa.table(
                {
                    "query_id": [7, 8],
                    "query": ["a", "b"],
                    "relevant_chunk_ids": [["c1", "c2"], None],
                    "hops": [1, None],
                    "tags": [[{"a": 1}], []],
                }
            ),
            path,
        )

        dataset = load_dataset(path)

        assert dataset.name == "golden"
        assert dataset.frame["query_id"].tolist() == ["7", "8"]
        assert dataset.qrels["chunk_id"].tolist() == ["c1", "c2"]
        assert dataset.samples[0].metadata == {"hops": 1, "tags": [{"a": 1}]}
        assert dataset.samples[1].metadata == {"tags": []}

    def test_grades_in_structs(self, tmp_path):
        path = tmp_path / "golden.parquet"
        pq.write_table(
            pa.table(
                {"id": ["a"], "query": ["q"], "relevant_chunk_ids": [[{"id": "c", "grade": 2}]]}
            ),
            path,
        )

        assert load_dataset(path).qrels["grade"].tolist() == [2]

    def test_an_index_is_not_a_field_unless_it_has_a_name(self, tmp_path):
        frame = pd.DataFrame({"query": ["a"]}, index=pd.Index(["q1"], name="query_id"))
        frame.to_parquet(tmp_path / "named.parquet")
        frame = frame.reset_index().set_axis(["x"])
        frame.to_parquet(tmp_path / "nameless.parquet")

        for name in ("named", "nameless"):
            dataset = load_dataset(tmp_path / f"{name}.parquet")
            assert dataset.frame.columns.tolist()[4:] == []
            assert "q1" in dataset

    def test_faults_have_their_row(self, tmp_path, faults_of):
        path = tmp_path / "golden.parquet"
        pq.write_table(pa.table({"id": ["a", None], "query": ["q", ""]}), path)

        assert faults_of(load_dataset, path) == (
            "row 1: id: is missing; every sample needs one",
            "row 1: query: must not be empty, got ''",
        )

    def test_what_is_not_parquet(self, tmp_path):
        path = tmp_path / "golden.parquet"
        path.write_bytes(b"PAR1 not really PAR1")
        assert "not a readable Parquet file" in load_error(path)
        path.unlink()
        path.mkdir()
        assert "BEIR folder" in load_error(path)

    def test_text_that_is_not_utf8(self, tmp_path):
        path = tmp_path / "golden.parquet"
        bad = pa.array([b"\xff"]).view(pa.string())
        pq.write_table(pa.table({"id": ["a"], "query": bad}), path)

        assert "not a readable Parquet file" in load_error(path)

    def test_what_unpacks_to_too_much(self, tmp_path):
        path = tmp_path / "golden.parquet"
        rows = 100_000
        pq.write_table(pa.table({"id": ["a"] * rows, "query": ["b"] * rows}), path)

        assert path.stat().st_size < 50_000
        assert "larger than 50,000 bytes" in load_error(path, max_bytes=50_000)


class TestBeir:
    @pytest.fixture
    def folder(self, tmp_path):
        folder = tmp_path / "tiny"
        (folder / "qrels").mkdir(parents=True)
        queries = [
            {"_id": "q1", "text": "a", "metadata": {"answer": "x", "type": "bridge", "hops": 2}},
            {"_id": 2, "text": "b", "metadata": {"answer": "", "type": "comparison"}},
            {"_id": "q3", "text": "c", "metadata": None, "lang": "en"},
        ]
        lines = "".join(json.dumps(query) + "\n" for query in queries)
        (folder / "queries.jsonl").write_text(lines)
        (folder / "corpus.jsonl").write_text('{"_id": "c1"}\n{"_id": "c2"}\n')
        (folder / "qrels" / "test.tsv").write_text(
            "query-id\tcorpus-id\tscore\r\nq1\tc1\t1\r\nq1\tc2\t2\r\n\n"
        )
        (folder / "qrels" / "train.tsv").write_text("2\tc2\t-1\n")
        return folder

    def test_loads(self, folder):
        dataset = load_dataset(folder)

        assert (dataset.name, dataset.version) == ("tiny", "unversioned")
        assert dataset.frame["query_id"].tolist() == ["q1", "2", "q3"]
        assert dataset.frame["expected_answer"].isna().tolist() == [False, True, True]
        assert dataset.frame["query_type"].isna().all()
        assert dataset.samples[0].metadata == {"type": "bridge", "hops": 2}
        assert dataset.samples[2].metadata == {"lang": "en"}
        assert dataset.qrels["grade"].tolist() == [1, 2, -1]
        assert dataset.warnings == ("1 of 3 queries have no label; split= keeps the others",)

    def test_a_split_takes_its_own_queries(self, folder):
        dataset = load_dataset(folder, split="test")

        assert dataset.frame["query_id"].tolist() == ["q1"]
        assert dataset.warnings == ()
        assert load_dataset(folder, split="train").frame["query_id"].tolist() == ["2"]

    def test_an_unknown_split(self, folder):
        assert "no qrels/dev.tsv; splits there are: test, train" in load_error(folder, split="dev")

    def test_type_is_the_query_type_where_declared(self, folder):
        dataset = load_dataset(folder, query_types=["bridge", "comparison"])

        assert dataset.frame["query_type"].tolist()[:2] == ["bridge", "comparison"]
        assert dataset.samples[0].metadata == {"hops": 2}
        assert load_dataset(folder, query_types="any").query_types == ("bridge", "comparison")

    def test_type_must_be_among_the_declared(self, folder, faults_of):
        faults = faults_of(load_dataset, folder, query_types=["bridge"])

        assert faults[0].startswith(
            "samples[1], queries.jsonl line 2 (id '2'): query_type: 'comparison' is not one of "
        )

    def test_type_is_the_query_type_where_all_are_standard(self, folder):
        (folder / "queries.jsonl").write_text(
            '{"_id": "q1", "text": "a", "metadata": {"type": "factual"}}\n'
            '{"_id": "2", "text": "b", "metadata": {}}\n'
        )

        dataset = load_dataset(folder)

        assert dataset.frame["query_type"].tolist()[0] == "factual"
        assert "type" not in dataset.frame

    def test_a_query_type_of_its_own_comes_first(self, folder):
        (folder / "queries.jsonl").write_text(
            '{"_id": "q1", "text": "a", "metadata": {"type": "x", "query_type": "multi-hop"}}\n'
        )

        dataset = load_dataset(folder, split="test", query_types=["x"])

        assert dataset.samples[0].query_type == "multi-hop"
        assert dataset.samples[0].metadata == {"type": "x"}

    def test_packed_files(self, folder):
        for name in ("queries", "corpus"):
            plain = folder / f"{name}.jsonl"
            (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()

        assert len(load_dataset(folder)) == 3

    def test_faults(self, folder, faults_of):
        with (folder / "qrels" / "test.tsv").open("a") as stream:
            stream.write("q1\tc1\t1\nq1 0 c1 1\n\tc1\t1\nq1\t \t1\nq1\tc3\tyes\n")
        (folder / "queries.jsonl").write_text('{"text": "a"}\n')

        assert faults_of(load_dataset, folder) == (
            "qrels/test.tsv line 6: must be query id, corpus id and a whole number, separated by "
            "tabs, got 'q1 0 c1 1'",
            "qrels/test.tsv line 9: must be query id, corpus id and a whole number, separated by "
            "tabs, got 'q1\\tc3\\tyes'",
            "qrels/test.tsv line 7: query_id: must not be empty, got ''",
            "qrels/test.tsv line 8: chunk_id: must not be empty, got ''",
            "samples[0], queries.jsonl line 1: id: is missing; every sample needs one",
        )

    def test_a_pair_given_twice(self, folder, faults_of):
        with (folder / "qrels" / "train.tsv").open("a") as stream:
            stream.write("q1\tc1\t1\n")

        assert faults_of(load_dataset, folder) == (
            "qrels/train.tsv line 2: the pair 'q1', 'c1' is given twice",
        )

    def test_reserved_metadata_can_be_renamed(self, folder, faults_of):
        (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "a", "metadata": ["x"]}\n')

        assert "rename={'metadata': 'my_metadata'}" in faults_of(load_dataset, folder)[0]
        assert len(load_dataset(folder, rename={"metadata": "notes"})) == 1

    def test_what_the_corpus_says(self, folder):
        (folder / "corpus.jsonl").write_text('{"_id": "c1"}\noops\n')

        warnings = load_dataset(folder, split="test").warnings

        assert warnings[0].startswith("corpus.jsonl: 1 lines cannot be read, the first: corpus")
        assert warnings[1] == (
            "1 labelled chunk ids are not in corpus.jsonl, such as 'c2'; no pipeline can find them"
        )

    def test_a_large_corpus_is_a_warning(self, folder):
        (folder / "corpus.jsonl").write_text('{"_id": "c1"}\n' * 100)

        warnings = load_dataset(folder, split="test", max_bytes=1000).warnings

        assert warnings[0].startswith("labels were not checked against the corpus: ")

    def test_the_corpus_may_be_absent(self, folder):
        (folder / "corpus.jsonl").unlink()

        assert load_dataset(folder, split="test").warnings == ()

    def test_labels_of_other_queries_are_a_warning(self, folder):
        (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "a"}\n')

        assert load_dataset(folder).warnings == (
            "1 labels belong to 1 query ids that no sample has, such as '2'",
        )

    def test_an_incomplete_folder(self, folder):
        for path in (folder / "qrels").iterdir():
            path.unlink()
        assert "has qrels/*.tsv, and this one does not" in load_error(folder)
        (folder / "queries.jsonl").unlink()
        assert "has queries.jsonl, and this one does not" in load_error(folder)

    @pytest.mark.parametrize(
        ("name", "queries", "labels"), [("hotpotqa", 300, 600), ("xquad_en", 1190, 1190)]
    )
    def test_real_folders(self, shared_data, name, queries, labels):
        dataset = load_dataset(shared_data / "retrieval" / name)

        assert (len(dataset), len(dataset.qrels)) == (queries, labels)
        assert dataset.frame["expected_answer"].notna().all()
        assert dataset.warnings == ()


class TestFrame:
    def test_labels_as_a_table_of_their_own(self):
        frame = pd.DataFrame({"id": [1, 2], "query": ["a", "b"]})
        qrels = pd.DataFrame({"query_id": [2, 1], "chunk_id": [10, 11], "grade": [2.0, None]})

        dataset = GoldenDataset.from_frame(frame, qrels=qrels)

        assert dataset.qrels.to_numpy().tolist() == [["1", "11", 1], ["2", "10", 2]]
        assert GoldenDataset.from_frame(frame, qrels=qrels.drop(columns="grade")).qrels[
            "grade"
        ].tolist() == [1, 1]

    def test_faults_of_the_table_of_labels(self, faults_of):
        frame = pd.DataFrame({"id": [1], "query": ["a"], "relevant_chunk_ids": [["c"]]})
        qrels = pd.DataFrame({"query_id": ["1", None], "chunk_id": [2.5, "c"], "grade": ["x", 1]})

        assert faults_of(GoldenDataset.from_frame, frame, qrels=qrels) == (
            "relevant_chunk_ids: labels are given twice: in the samples and as qrels",
            "qrels row 0: chunk_id: must be text, got 2.5",
            "qrels row 0: grade must be a whole number, got 'x'",
            "qrels row 1: query_id: is missing",
        )
        with pytest.raises(DatasetValidationError, match="qrels has no column 'chunk_id'"):
            GoldenDataset.from_frame(frame, qrels=qrels[["query_id"]])

    def test_a_named_index_is_a_field(self):
        frame = pd.DataFrame({"query": ["a"]}, index=pd.Index(["q1"], name="id"))

        assert "q1" in GoldenDataset.from_frame(frame)

    def test_columns_of_one_name(self, faults_of):
        frame = pd.DataFrame([["q1", "a", "b"]], columns=["id", "query", "query"])

        assert "two columns are called 'query'; rename or drop one of them" in faults_of(
            GoldenDataset.from_frame, frame
        )

    def test_fractions_are_no_ids(self, faults_of):
        frame = pd.DataFrame({"id": [1.0, None], "query": ["a", "b"]})

        assert faults_of(GoldenDataset.from_frame, frame) == (
            "row 0: id: must be text, got 1.0",
            "row 1: id: is missing; every sample needs one",
        )

    def test_metadata_keeps_its_type(self):
        frame = pd.DataFrame(
            {
                "id": ["a"],
                "query": ["b"],
                "when": pd.to_datetime(["2024-05-01"]),
                "kind": pd.Categorical(["x"]),
                3: [1],
            },
            index=[9],
        )

        result = GoldenDataset.from_frame(frame).frame

        assert result["when"].dtype == frame["when"].dtype
        assert result["kind"].dtype == frame["kind"].dtype
        assert result["3"].dtype == "int64"
        assert result.index.tolist() == [0]
