"""Copies a golden Iceberg table to another place, with every path in its metadata re-rooted.

Metadata of Iceberg holds whole addresses, so a copy that lies elsewhere is not a table. Data files
are copied unchanged; manifests, their lists and files of position deletes get other sizes.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["relocate"]

_FILE_PATH_ID = 2147483546
_PUFFIN = b"PFA1"


def relocate(source: Path, target: Path, original_root: str) -> None:
    """Copy the table that was written at ``original_root`` from ``source`` to ``target``."""
    _Relocation(source, target, original_root.rstrip("/"), str(target)).run()


@dataclass
class _Relocation:
    source: Path
    target: Path
    old: str
    new: str
    sizes: dict[str, int] = field(default_factory=dict)
    """The new sizes of rewritten files."""

    def run(self) -> None:
        names = [
            path.relative_to(self.source).as_posix()
            for path in self.source.rglob("*")
            if path.is_file()
        ]
        metadata = [name for name in names if name.startswith("metadata/")]
        lists = [name for name in metadata if name.startswith("metadata/snap-")]
        for name in names:
            (self.target / name).parent.mkdir(parents=True, exist_ok=True)
        for name in metadata:
            if name.endswith(".avro") and name not in lists:
                self._if_readable(name, self._in_manifest)
        for name in lists:
            self._if_readable(name, self._in_list)
        for name in names:
            if name.endswith(".metadata.json"):
                self._json(name)
            elif name not in self.sizes:
                shutil.copy2(self.source / name, self.target / name)

    def _if_readable(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        with suppress(ValueError):  # a planted file that is no Avro file is copied as it is
            self._avro(name, change)

    def _avro(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        with (self.source / name).open("rb") as file:
            reader = fastavro.reader(file)
            records: list[Any] = list(reader)
            metadata = dict(reader.metadata)
        schema = json.loads(metadata.pop("avro.schema"))
        codec = metadata.pop("avro.codec", "null")
        for record in records:
            change(record)
        with (self.target / name).open("wb") as file:
            fastavro.writer(file, schema, records, codec=codec, metadata=metadata)
        self.sizes[name] = (self.target / name).stat().st_size

    def _json(self, name: str) -> None:
        content = (self.source / name).read_bytes()
        with suppress(ValueError):  # a planted file that is no JSON is copied as it is
            content = json.dumps(self._walk(json.loads(content)), ensure_ascii=False).encode()
        (self.target / name).write_bytes(content)

    def _in_list(self, record: dict[str, Any]) -> None:
        inside = self._inside(record["manifest_path"])
        record["manifest_path"] = self._path(record["manifest_path"])
        record["manifest_length"] = self.sizes.get(inside, record["manifest_length"])

    def _in_manifest(self, record: dict[str, Any]) -> None:
        file = record["data_file"]
        inside = self._inside(file["file_path"])
        if file.get("content") == 1 and (self.source / inside).is_file():
            self._position_deletes(inside, file["file_format"].lower())
            file["file_size_in_bytes"] = self.sizes[inside]
        file["file_path"] = self._path(file["file_path"])
        if file.get("referenced_data_file"):
            file["referenced_data_file"] = self._path(file["referenced_data_file"])
        for bounds in (file.get("lower_bounds") or [], file.get("upper_bounds") or []):
            for entry in bounds:
                if entry["key"] == _FILE_PATH_ID:
                    entry["value"] = self._path(entry["value"].decode(errors="replace")).encode()

    def _position_deletes(self, name: str, file_format: str) -> None:
        if name in self.sizes:
            return
        if file_format == "avro":
            self._avro(name, self._in_position_deletes)
        elif file_format == "puffin":
            self._puffin(name)
        else:
            self._parquet(name)
        self.sizes[name] = (self.target / name).stat().st_size

    def _in_position_deletes(self, record: dict[str, Any]) -> None:
        record["file_path"] = self._path(record["file_path"])

    def _puffin(self, name: str) -> None:
        content = (self.source / name).read_bytes()
        size, flags = struct.unpack("<i", content[-12:-8])[0], content[-8:-4]
        footer = json.loads(content[-12 - size : -12])
        packed = json.dumps(self._walk(footer), separators=(",", ":")).encode()
        end = packed + struct.pack("<i", len(packed)) + flags + _PUFFIN
        (self.target / name).write_bytes(content[: -12 - size] + end)

    def _parquet(self, name: str) -> None:
        file = pq.ParquetFile(self.source / name)
        table = file.read()
        place = table.schema.get_field_index("file_path")
        paths = [self._path(each) for each in table.column(place).to_pylist()]
        table = table.set_column(place, table.schema.field(place), pa.array(paths, pa.string()))
        kept = {
            key: value
            for key, value in (file.metadata.metadata or {}).items()
            if key != b"ARROW:schema"
        }
        table = table.replace_schema_metadata(kept or None)
        pq.write_table(table, self.target / name, compression="zstd", store_schema=False)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._walk(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._walk(each) for each in value]
        return self._path(value) if isinstance(value, str) else value

    def _path(self, address: str) -> str:
        """Return an address in the new place, in the form that it has."""
        for scheme in ("file://", "file:", ""):
            old = scheme + self.old
            if address == old or address.startswith(f"{old}/"):
                return scheme + self.new + address[len(old) :]
        return address

    def _inside(self, address: str) -> str:
        """Return the name of a file below the table's directory."""
        return address.partition(f"{self.old}/")[2]
