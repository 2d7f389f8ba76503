"""Text files of every dialect, and what each way into a table makes of them."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import lakeformat as lake

__all__ = ["CASES", "Case", "empty_table", "rows_in"]

COLUMNS = [
    ("id", "INT"),
    ("s", "STRING"),
    ("price", "DECIMAL(6, 2)"),
    ("flag", "BOOLEAN"),
    ("at", "TIMESTAMP(3)"),
    ("f", "DOUBLE"),
    ("raw", "BYTES"),
    ("places", "MAP<STRING, INT>"),
]


@dataclass(frozen=True)
class Case:
    """A file, its dialect, and the rows or a pattern of the refusal."""

    name: str
    content: bytes | str
    outcome: list[dict[str, Any]] | str
    options: dict[str, Any] = field(default_factory=dict)
    columns: int = len(COLUMNS)
    """The table has the first of them."""

    def write(self, folder: Path) -> Path:
        """Write the file into a folder."""
        path = folder / self.name
        content = self.content
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def zstd(content: bytes) -> bytes:
    with pa.BufferOutputStream() as sink:
        with pa.CompressedOutputStream(sink, "zstd") as packed:
            packed.write(content)
        return sink.getvalue().to_pybytes()


ONE = b"id,s\n1,a\n"
OF_ONE = [{"id": 1, "s": "a"}]
WIDE = "x" * 9_000_000

CASES = {
    "a delimiter, a quote and a line break in quotes": Case(
        "a.csv",
        'id,s\n1,"a,b"\n2,"say ""hi"""\n3,"one\ntwo"\n4,5" pipe\n',
        [
            {"id": 1, "s": "a,b"},
            {"id": 2, "s": 'say "hi"'},
            {"id": 3, "s": "one\ntwo"},
            {"id": 4, "s": '5" pipe'},
        ],
    ),
    "another delimiter and quote": Case(
        "a.csv", "id;s\n1;'a;b'\n", [{"id": 1, "s": "a;b"}], {"delimiter": ";", "quote": "'"}
    ),
    "tabs": Case("a.csv", "id\ts\n1\ta\n", OF_ONE, {"delimiter": r"\t"}),
    "no quote": Case("a.csv", 'id,s\n1,"a\n', [{"id": 1, "s": '"a'}], {"quote": ""}),
    "an escape": Case(
        "a.csv",
        'id,s\n1,a\\,"b\n2,"c\\"d"\n',
        [{"id": 1, "s": 'a,"b'}, {"id": 2, "s": 'c"d'}],
        {"escape": "\\"},
    ),
    "a quote that stays open behind an escape": Case(
        "a.csv", 'id,s\n1,a\\,"b\n2,"c\\"\n', "opens in line 3 is never closed", {"escape": "\\"}
    ),
    "Windows lines": Case("a.csv", "id,s\r\n1,a\r\n", OF_ONE),
    "a mark of UTF-8": Case("a.csv", b"\xef\xbb\xbf" + ONE, OF_ONE),
    "a mark of UTF-8 in JSON": Case("a.json", b'\xef\xbb\xbf{"id": 1, "s": "a"}\n', OF_ONE),
    "latin-1": Case(
        "a.csv", "id,s\n1,é\n".encode("latin-1"), [{"id": 1, "s": "é"}], {"encoding": "latin-1"}
    ),
    "latin-1 without a word of it": Case(
        "a.csv", "id,s\n1,a\n2,é\n".encode("latin-1"), "not UTF-8 .row 2, column 's'.: set enc"
    ),
    "UTF-16 in JSON": Case(
        "a.json",
        '{"id": 1, "s": "é"}'.encode("utf-16"),
        [{"id": 1, "s": "é"}],
        {"encoding": "utf-16"},
    ),
    "a wrong encoding": Case("a.csv", ONE, "it is not utf-16-be", {"encoding": "utf-16-be"}),
    "gzip": Case("a.csv.gz", gzip.compress(b"id,s\n") + gzip.compress(b"1,a\n"), OF_ONE),
    "bz2": Case("a.csv.bz2", bz2.compress(ONE), OF_ONE),
    "zstd": Case("a.csv.zst", zstd(b"id,s\n") + zstd(b"1,a\n"), OF_ONE),
    "packed, by another name": Case("a.csv", gzip.compress(ONE), OF_ONE, {"compression": "gzip"}),
    "packed latin-1": Case(
        "a.csv.gz",
        gzip.compress("id,s\n1,é\n".encode("latin-1")),
        [{"id": 1, "s": "é"}],
        {"encoding": "latin-1"},
    ),
    "packed and cut short": Case("a.csv.zst", zstd(ONE)[:-3], "damaged zstd file, or ends too"),
    "packed in a way that is not read": Case(
        "a.csv.xz", ONE, "has a compression .*: decompress it", {"format": "csv"}
    ),
    "empty is null and quotes are empty": Case(
        "a.csv", 'id,s,f\n1,,\n2,"",\n', [{"id": 1, "s": None, "f": None}, {"id": 2, "s": ""}]
    ),
    r"\N is null and empty is empty": Case(
        "a.csv",
        'id,s\n\\N,a\n2,\n3,\\N\n4,"\\N"\n',
        [
            {"id": None, "s": "a"},
            {"id": 2, "s": ""},
            {"id": 3, "s": None},
            {"id": 4, "s": "\\N"},
        ],
        {"null_values": ["\\N"]},
    ),
    "two words for null": Case(
        "a.csv",
        "id,s\n,a\nNULL,NULL\n",
        [{"id": None, "s": "a"}, {"id": None, "s": None}],
        {"null_values": ["", "NULL"]},
    ),
    "leading zeros": Case("a.csv", "id,s\n007,007\n", [{"id": 7, "s": "007"}]),
    "truth": Case(
        "a.csv",
        "id,flag\n1,true\n2,False\n3,1\n",
        [{"id": 1, "flag": True}, {"id": 2, "flag": False}, {"id": 3, "flag": True}],
    ),
    "no truth": Case(
        "a.csv", "id,flag\n1,yes\n", "row 1, column 'flag': 'yes' is not a value of type BOOLEAN"
    ),
    "times": Case(
        "a.csv",
        "id,at\n1,2024-01-31 10:00:00.123\n2,2024-01-31T10:00\n3,2024-01-31\n",
        [
            {"id": 1, "at": datetime(2024, 1, 31, 10, 0, 0, 123000)},
            {"id": 2, "at": datetime(2024, 1, 31, 10)},
            {"id": 3, "at": datetime(2024, 1, 31)},
        ],
    ),
    "a time with a zone": Case(
        "a.csv", "id,at\n1,2024-01-31 10:00:00Z\n", "row 1, column 'at': .*type TIMESTAMP.*zone"
    ),
    "a time in JSON": Case(
        "a.jsonl", '{"at": "2024-01-31 10:00"}\n', [{"at": datetime(2024, 1, 31, 10)}]
    ),
    "a time with a zone in JSON": Case(
        "a.json", '{"id": 1}\n{"at": "2024-01-31T10:00:00Z"}\n', "row 2, column 'at': .*zone"
    ),
    "decimals": Case("a.csv", "id,price\n1,1.5\n", [{"id": 1, "price": Decimal("1.50")}]),
    "a decimal too fine": Case(
        "a.csv",
        "id,price\n1,1\n2,1.505\n",
        r"row 2, column 'price': '1.505' is not a value of type DECIMAL\(6, 2\)",
    ),
    "a decimal too large": Case(
        "a.csv", "id,price\n1,1\n2,12345.5\n", "column 'price'.*digits.* row 2"
    ),
    "decimals in JSON": Case(
        "a.json",
        '{"price": 1.5}\n{"price": "2.5"}\n',
        [{"price": Decimal("1.50")}, {"price": Decimal("2.50")}],
    ),
    "bytes": Case("a.csv", b"id,raw\n1,\xff\n", [{"id": 1, "raw": b"\xff"}]),
    "bytes that would be decoded": Case(
        "a.csv", b"id,raw\n1,\xff\n", "column 'raw' is BYTES.*Parquet", {"encoding": "latin-1"}
    ),
    "bytes in JSON": Case(
        "a.json", '{"raw": "YQ=="}\n', "JSON cannot hold column 'raw' of type BYTES: .*Parquet"
    ),
    "a map in CSV": Case(
        "a.csv", "id,places\n1,x\n", "CSV cannot hold column 'places' of type .*Parquet"
    ),
    "a map in JSON": Case("a.json", '{"id": 1}\n{"places": {"a": 1}}\n', "row 2: .*'places'"),
    "a wide row": Case(
        "a.csv",
        f"id,s\n1,a\n2,{WIDE}\n3,b\n",
        [{"id": 1, "s": "a"}, {"id": 2, "s": WIDE}, {"id": 3, "s": "b"}],
    ),
    "a wide row in JSON": Case(
        "a.json", f'{{"s": "a"}}\n{{"s": "{WIDE}"}}\n', [{"s": "a"}, {"s": WIDE}]
    ),
    "columns that are not there": Case("a.csv", "s\na\n", [{"id": None, "s": "a"}]),
    "columns in another order": Case("a.csv", "s,id\na,1\n", OF_ONE),
    "an unknown column": Case("a.csv", "id,sum\n1,2\n", "no column 'sum'; its columns are id, s"),
    "an unknown column in JSON": Case(
        "a.json", '{"id": 1}\n{"sum": 1}\n', "row 2 has .*no column 'sum', only id, s"
    ),
    "another delimiter": Case(
        "a.csv",
        "id;s\n1;a\n",
        r"the header has one column, 'id;s': write delimiter=';' if these are 2",
    ),
    "another delimiter before a comma": Case(
        "a.csv", "id;s\n1;2,5\n", r"the header has one column, 'id;s': write delimiter=';'"
    ),
    "a tab as delimiter": Case("a.csv", "id\ts\n1\ta\n", r"write delimiter='\\t' if these are 2"),
    "a number that is too large": Case(
        "a.csv",
        "id,s\n1,a\n3000000000,b\n",
        "row 2, column 'id': '3000000000' is beyond the range of INT: .* make the column a BIGINT",
    ),
    "a number beyond BIGINT": Case(
        "a.csv", "id,s\n9223372036854775808,a\n", r"range of INT: .* a DECIMAL\(38, 0\)"
    ),
    "a plus sign": Case(
        "a.csv", "id,s\n+5,a\n", r"row 1, column 'id': '\+5' is not a value of type INT"
    ),
    "a letter of latin-1 in a number": Case(
        "a.csv", "id,s\né,a\n".encode("latin-1"), "it is not UTF-8 .*column 'id'"
    ),
    "a column twice": Case("a.csv", "id,id\n1,2\n", "more than one column named 'id'"),
    "too few values": Case(
        "a.csv", 'id,s\n1,"a\nb"\n\n2\n', "row 2 has 1 value for 2 columns: quote"
    ),
    "too many values": Case("a.csv", "id,s\n1,a,b\n", "row 1 has 3 values for 2 columns"),
    "no header": Case("a.csv", "1,a\n", OF_ONE, {"header": False}, 2),
    "no header and too few values": Case(
        "a.csv", "1,a\n", "row 1 has 2 values for 8 columns", {"header": False}
    ),
    "a bad value without a header": Case(
        "a.csv",
        "1,a\nx,a\n",
        "row 2, column 'id': 'x' is not a value of type INT.*null_values",
        {"header": False},
        2,
    ),
    "an empty file": Case("a.csv", "", "it is empty and has no header"),
    "an empty file without a header": Case("a.csv", "", [], {"header": False}),
    "an empty JSON file": Case("a.json", "", []),
    "blank lines of JSON": Case("a.json", "\n \n", []),
    "a header alone": Case("a.csv", "id,s\n", []),
    "an array of JSON": Case("a.json", '[{"id": 1}]\n', "line 1, .*, is not a JSON object"),
    "no JSON": Case("a.json", '{"id": 1}\n{"id": }\n', "row 2 is not JSON: "),
    "a text in JSON for a number": Case(
        "a.json",
        '{"id": 1}\n\n{"id": "x"}\n',
        "row 2, column 'id': \"x\" is not a value of type INT",
    ),
    "a fraction in JSON for a whole number": Case(
        "a.json", '{"id": 1.5}\n', "row 1, column 'id': 1.5 is not a value of type INT"
    ),
    "a format by name": Case("a.txt", ONE, OF_ONE, {"format": "csv"}),
    "no format": Case("a.txt", ONE, "a.txt' is unknown: use a name that ends in"),
    "a delimiter of JSON": Case("a.json", "", "where delimiter has no meaning", {"delimiter": ";"}),
    "a long delimiter": Case(
        "a.csv", ONE, "delimiter'? must be one ASCII char", {"delimiter": "||"}
    ),
    "one character twice": Case("a.csv", ONE, "must differ", {"quote": ","}),
    "an unknown encoding": Case("a.csv", ONE, "'klingon'", {"encoding": "klingon"}),
    "an unknown compression": Case("a.csv", ONE, "'rar'", {"compression": "rar"}),
    "a null that is escaped": Case(
        "a.csv", ONE, "removes the escape", {"null_values": ["\\N"], "escape": "\\"}
    ),
}


def empty_table(root: Path, case: Case) -> lake.Table:
    """Create the target table of the file."""
    catalog = lake.open_catalog(str(root))
    catalog.create_database("shop")
    return catalog.create_table("shop.orders", COLUMNS[: case.columns])


def rows_in(root: Path, case: Case) -> list[dict[str, Any]]:
    """Return the rows of the table, with the columns that the case has a value for."""
    found = lake.open_catalog(str(root)).table("shop.orders").scan().to_arrow().to_pylist()
    assert isinstance(case.outcome, list)
    return [{name: row[name] for name in of} for row, of in zip(found, case.outcome, strict=True)]
