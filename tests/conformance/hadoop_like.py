"""A file system in memory that behaves like HDFS behind Arrow, the dangerous part included."""

from __future__ import annotations

import io
import threading
from pathlib import PurePosixPath

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystemHandler, FileType


class HadoopLike(FileSystemHandler):
    """Rename refuses a taken name and moves into a directory; ``move`` adds what Arrow adds.

    Arrow: if the rename fails and both names are files, the target is deleted and the rename
    repeated. A file whose status cannot be read is "not found", for any reason.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.directories = {"/"}
        self.lock = threading.RLock()
        self.lost_answers = 0
        """So many moves are made and reported as failed."""
        self.is_down = False
        self.replaces = False
        """A rename like that of POSIX."""

    def rename(self, source: str, target: str) -> None:
        """Rename as HDFS does: atomic, and never over a file."""
        with self.lock:
            if target in self.directories:
                target = f"{target}/{PurePosixPath(source).name}"
            if source in self.directories and target not in self.files:
                self._rename_directory(source, target)
                return
            if source not in self.files or (target in self.files and not self.replaces):
                raise OSError(f"rename {source} -> {target} returned false")
            if str(PurePosixPath(target).parent) not in self.directories:
                raise OSError("no such directory")
            self.files[target] = self.files.pop(source)

    def _rename_directory(self, source: str, target: str) -> None:
        if target in self.directories or str(PurePosixPath(target).parent) not in self.directories:
            raise OSError(f"rename {source} -> {target} returned false")

        def moved(path: str) -> str:
            inside = path == source or path.startswith(f"{source}/")
            return target + path.removeprefix(source) if inside else path

        self.files = {moved(path): content for path, content in self.files.items()}
        self.directories = {moved(path) for path in self.directories}

    def move(self, src: str, dest: str) -> None:
        try:
            self.rename(src, dest)
        except OSError:
            if not (src in self.files and dest in self.files):
                raise
            del self.files[dest]
            self.rename(src, dest)
        if self.lost_answers:
            self.lost_answers -= 1
            raise OSError("the connection broke")

    def get_type_name(self) -> str:
        return "hadoop-like"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        with self.lock:
            return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        with self.lock:
            here = "/" + selector.base_dir.strip("/")
            found = [*self.files, *(self.directories - {"/"})]
            return [self._info(path) for path in found if str(PurePosixPath(path).parent) == here]

    def create_dir(self, path: str, recursive: bool) -> None:
        with self.lock:
            self.directories.update(str(above) for above in PurePosixPath(path).parents)
            self.directories.add(path)

    def delete_dir(self, path: str) -> None:
        with self.lock:
            if path not in self.directories:
                raise OSError("no such directory")
            inside = f"{path}/"
            self.files = {
                name: content for name, content in self.files.items() if not name.startswith(inside)
            }
            self.directories = {
                name for name in self.directories if not f"{name}/".startswith(inside)
            }

    def delete_file(self, path: str) -> None:
        with self.lock:
            if self.files.pop(path, None) is None:
                raise OSError("no such file")

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self.files[path])

    open_input_stream = open_input_file

    def open_output_stream(self, path: str, metadata: object) -> pa.NativeFile:
        with self.lock:
            self.files[path] = b""
        return pa.PythonFile(_Growing(self, path), mode="w")

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise AssertionError("not used")

    def delete_root_dir_contents(self) -> None:
        raise AssertionError("not used")

    def copy_file(self, src: str, dest: str) -> None:
        raise AssertionError("not used")

    def open_append_stream(self, path: str, metadata: object) -> pa.NativeFile:
        raise AssertionError("not used")

    def _info(self, path: str) -> FileInfo:
        if self.is_down:
            return FileInfo(path, FileType.NotFound)
        if path in self.files:
            return FileInfo(path, FileType.File, size=len(self.files[path]), mtime=_now())
        found = FileType.Directory if path in self.directories else FileType.NotFound
        return FileInfo(path, found)


class _Growing(io.RawIOBase):
    """Readers see written bytes at once."""

    def __init__(self, system: HadoopLike, path: str) -> None:
        self._system = system
        self._path = path

    def writable(self) -> bool:
        return True

    def write(self, content: object) -> int:
        added = bytes(content)
        with self._system.lock:
            self._system.files[self._path] += added
        return len(added)

    def tell(self) -> int:
        return len(self._system.files[self._path])


def _now() -> float:
    import time

    return time.time()
