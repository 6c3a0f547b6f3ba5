"""Folders: temporary ones, and arrays as a dataset's folder, whose format is in docs/data.md."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from ._errors import Failed, mistake

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Array = npt.NDArray[Any]
_PREFIX = "starling-py-"
_swept = False


class Temporary:
    """A folder that is removed with the object, when Python ends, or, where Python was killed, by the next one."""

    def __init__(self) -> None:
        _sweep()
        try:
            while True:
                self.path = tempfile.mkdtemp(prefix=_PREFIX)
                held = os.path.join(self.path, ".lock")
                lock = os.open(held, os.O_CREAT | os.O_RDWR, 0o600)
                if fcntl is not None:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                if os.path.exists(held):
                    break
                os.close(lock)  # another process removed it before it was held
        except OSError as e:
            raise Failed(f"{tempfile.gettempdir()}: no folder can be made here: {e.strerror}; name another in $TMPDIR") from e
        self.remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())


def _remove(path: str, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked child
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _sweep() -> None:
    """Removes, once, the folders of processes that were killed: nobody holds their locks."""
    global _swept
    if _swept or fcntl is None:
        return
    _swept = True
    for name in os.listdir(tempfile.gettempdir()):
        path = os.path.join(tempfile.gettempdir(), name)
        try:
            if not name.startswith(_PREFIX) or os.stat(path).st_uid != os.getuid():
                continue
            lock = os.open(os.path.join(path, ".lock"), os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except OSError:  # it is in use
            pass
        finally:
            os.close(lock)


def write_json(path: str, value: Any) -> None:
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)


def save(folder: str, name: str, array: Array) -> None:
    """Writes an array; one that is a whole npy file already is linked to."""
    path = os.path.join(folder, name + ".npy")
    file = _file_of(array)
    try:
        if file:
            os.symlink(file, path)
        else:
            np.save(path, np.ascontiguousarray(array), allow_pickle=False)
    except OSError as e:
        raise Failed(f"{path}: {e.strerror or e}: {array.nbytes:,} bytes cannot be written; free some, or name another "
                     "folder in $TMPDIR") from e


def _file_of(array: Array) -> str:
    """The npy file whose contents array is, mapped, and not changed since; "": none. So have tensors over one."""
    if not array.flags.c_contiguous:
        return ""
    if isinstance(array, np.memmap) and array.filename and array.mode != "c":
        path, offset = os.path.abspath(os.fspath(array.filename)), array.offset
    elif array.nbytes >= 1 << 20 and os.path.exists("/proc/self/smaps"):
        path, offset = _mapped(array.ctypes.data, array.nbytes)
    else:
        return ""
    try:
        whole = np.load(path, mmap_mode="r")
    except (OSError, ValueError):
        return ""
    same = (whole.dtype, whole.shape, getattr(whole, "offset", -1)) == (array.dtype, array.shape, offset)
    return path if same else ""


def _mapped(address: int, size: int) -> tuple[str, int]:
    """The file that memory is mapped from, and where in it; none where a page was written to that the file does not get."""
    found, at, inside, unknown = "", 0, False, False
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as f:
        for line in f:
            name, *values = line.rstrip("\n").split(None, 5)
            if not name.endswith(":"):  # of the next mapping: span, mode, offset, device, inode, path
                start, end = (int(a, 16) for a in name.split("-"))
                inside = start < address + size and address < end
                if unknown or (inside and (len(values) < 5 or found not in ("", values[4]))):
                    return "", 0
                if inside and start <= address:
                    found, at = values[4], int(values[1], 16) + address - start
                unknown = inside and values[0].startswith("rw") and values[0][3] != "s"
            elif inside and name in ("Anonymous:", "Swap:"):
                if values[0] != "0":
                    return "", 0
                unknown = False
    return found, at


def in_order(source: Array, target: Array, vertices: int) -> tuple[Array | None, bool]:
    """The order of edges by target, then source (None: they are), and whether each has its reverse."""
    key = target * np.int64(vertices) + source
    order = None if bool((key[1:] >= key[:-1]).all()) else np.argsort(key, kind="stable")
    reverse = source * np.int64(vertices) + target
    reverse.sort()
    return order, bool(np.array_equal(key if order is None else key[order], reverse))


def write_graph(folder: str, source: Array, target: Array, vertices: int,
                by_edge: dict[str, Array | None]) -> dict[str, Any]:
    """Writes edges by target, and what they have; it returns what meta.json says of them."""
    order, symmetric = in_order(source, target, vertices)
    indptr = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=vertices), out=indptr[1:])
    save(folder, "indptr", indptr)
    save(folder, "indices", (source if order is None else source[order]).astype(np.uint32))
    for name, array in by_edge.items():
        if array is not None:
            save(folder, name, array if order is None else array[order])
    return {"nodes": vertices, "edges": len(source), "symmetric": symmetric}


def write_features(folder: str, x: Any, suffix: str = "") -> dict[str, Any]:
    """Writes features, dense or of scipy's CSR; it returns what meta.json says of them."""
    if not isinstance(x, np.ndarray):
        save(folder, "features_indptr" + suffix, x.indptr.astype(np.int64))
        save(folder, "features_indices" + suffix, x.indices.astype(np.uint32))
        save(folder, "features_values" + suffix, x.data.astype(np.float32))
        return {"kind": "sparse", "dim": int(x.shape[1])}
    save(folder, "features" + suffix, x)
    return {"kind": "bfloat16" if x.dtype == np.uint16 else "float32", "dim": int(x.shape[1])}


def write_labels(folder: str, y: Array, names: list[str] | None, suffix: str = "") -> dict[str, Any]:
    """Writes labels that labels() made; it returns what meta.json says of them."""
    save(folder, "labels" + suffix, y)
    if y.dtype == np.int32:
        meta: dict[str, Any] = {"task": "single-label", "classes": len(names) if names else int(y.max()) + 1}
    else:
        meta = {"task": "multi-label" if y.dtype == np.uint8 else "regression", "classes": int(y.shape[1])}
    return meta if names is None else {**meta, "class_names": names}


def labels(y: Array, where: str, regression: bool) -> tuple[Array, list[str] | None]:
    """Labels as a dataset has them, and the names of classes that are words: in alphabetical order."""
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim not in (1, 2) or (y.ndim == 2 and y.shape[1] == 0):
        raise mistake(where, f"shape {y.shape}", "a label for each vertex, or a row of them")
    if y.dtype.kind in "OUS":
        words = np.array(["" if v is None or v != v else str(v) for v in y.ravel()])
        if y.ndim != 1 or not (words != "").any():
            raise mistake(where, f"words of shape {y.shape}", "one word for each vertex; None: no label")
        names, number = np.unique(words[words != ""], return_inverse=True)
        out = np.full(len(words), -1, np.int32)
        out[words != ""] = number
        return out, [str(n) for n in names]
    if y.dtype.kind == "f":
        known = y[np.isfinite(y)]
        if regression or bool((known % 1 != 0).any()):
            if np.isinf(y).any():
                raise mistake(where, "an infinite number", "finite numbers, or NaN where there is none")
            return y.reshape(len(y), -1).astype(np.float32), None
        y = np.where(np.isfinite(y), y, -1).astype(np.int64)
    elif y.dtype.kind not in "iub":
        raise mistake(where, f"type {y.dtype}", "whole numbers, numbers or words")
    if regression:
        return y.reshape(len(y), -1).astype(np.float32), None
    y = y.astype(np.int64)
    if y.ndim == 2:
        if y.size and (y.min() < -1 or y.max() > 1):
            raise mistake(where, f"rows of {y.min()} to {y.max()}", "0 and 1 for each class (-1: not known)")
        return np.where((y < 0).any(axis=1, keepdims=True), 255, y).astype(np.uint8), None
    if len(y) and (y.min() < -1 or y.max() >= 1 << 24):
        raise mistake(where, f"class {y.min() if y.min() < -1 else y.max()}", "classes from 0 on; -1: no label")
    if not len(y) or y.max() < 0:
        raise mistake(where, "no label at all", "a class for some vertices", "leave y out, and give task='link'")
    return y.astype(np.int32), None


def split(value: Array, count: int, where: str) -> Array:
    """A mask or a list of vertices, ascending."""
    if value.dtype == bool:
        if value.shape != (count,):
            raise mistake(where, f"a mask of shape {value.shape}", f"({count},)",
                          "choose one column" if value.ndim == 2 else "")
        return np.flatnonzero(value).astype(np.uint32)
    if value.ndim != 1 or value.dtype.kind not in "iu":
        raise mistake(where, f"{value.dtype} of shape {value.shape}", "a mask, or a list of vertices")
    if len(value) and (value.min() < 0 or value.max() >= count):
        raise mistake(where, f"vertex {value.min() if value.min() < 0 else value.max()}", f"0 to {count - 1}")
    return np.unique(value).astype(np.uint32)


def drawn_splits(labelled: Array, shares: tuple[float, float] = (0.6, 0.2)) -> dict[str, Array]:
    """Splits of vertices that have a label: 60%, 20% and 20%, the same for the same number of them."""
    order = np.random.RandomState(1).permutation(labelled)
    a, b = round(shares[0] * len(order)), round(sum(shares) * len(order))
    return {name: np.sort(part).astype(np.uint32)
            for name, part in zip(("train", "val", "test"), (order[:a], order[a:b], order[b:]))}
