# SPDX-License-Identifier: Apache-2.0
"""Holds octet's reading and writing of safetensors files against the package of that name.

usage: check_safetensors.py TRAIN_FILES

TRAIN_FILES is the build's tests/train_files. Files of the package go through octet (read as tensors,
written again) and must be the same to the package afterwards. Of broken files, octet may take none
that the package refuses. Ends with `N passed, N failed, N skipped`.
"""

import ctypes
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import safetensors
from safetensors import TensorSpec, safe_open

# Words that TensorSpec takes, and the bits of an element.
TYPES = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16, "int64": 64, "int32": 32,
         "int16": 16, "int8": 8, "uint64": 64, "uint32": 32, "uint16": 16, "uint8": 8,
         "float8_e4m3fn": 8, "float8_e5m2": 8}
NOTES = {"format": "pt", "text": 'a "b"\\ \n\t é 😀', "empty": ""}


def make(rng):
    """Tensors of every type, with odd names and shapes."""
    tensors = {}
    for word, bits in TYPES.items():
        for k, shape in enumerate(([], [3], [0, 4], [2, 1, 3], [1] * 8)):
            n = 1
            for dim in shape:
                n *= dim
            tensors[f"{word}/{k} 'é\n\"{k}\""] = word, shape, rng.randbytes(n * bits // 8)
    tensors["flags"] = "bool", [5], bytes(rng.randint(0, 1) for _ in range(5))
    return tensors


def file_of(tensors, metadata):
    """The bytes that the package writes."""
    kept = {name: ctypes.create_string_buffer(data, len(data) + 1)
            for name, (_, _, data) in tensors.items()}
    specs = {name: TensorSpec(dtype=word, shape=shape, data_ptr=ctypes.addressof(kept[name]),
                              data_len=len(data))
             for name, (word, shape, data) in tensors.items()}
    return bytes(safetensors.serialize(specs, metadata))


def contents(data):
    return {name: (t["dtype"], list(t["shape"]), bytes(t["data"]))
            for name, t in safetensors.deserialize(data)}


def through_octet(program, source, target):
    return subprocess.run([program, "copy", str(source), str(target)], capture_output=True,
                          text=True, timeout=60)


def check_copy(program, folder, metadata):
    source, target = folder / "theirs.safetensors", folder / "ours.safetensors"
    source.write_bytes(file_of(make(random.Random(1)), metadata))
    done = through_octet(program, source, target)
    if done.returncode:
        return False, done.stderr.strip()
    theirs, ours = contents(source.read_bytes()), contents(target.read_bytes())
    with safe_open(str(target), framework="np") as f:
        notes = f.metadata()
    if theirs != ours or (notes or None) != metadata:
        return False, f"{len(theirs)} tensors before, {len(ours)} after; notes {notes}"
    start = 8 + struct.unpack("<Q", target.read_bytes()[:8])[0]
    return start % 8 == 0, f"{len(ours)} tensors of {len(TYPES) + 1} types, data at byte {start}"


def damage(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        kind, at = rng.randrange(4), rng.randrange(len(data))
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] = rng.choice(b'{}[]",:0123456789 \\u')
        elif kind == 2:
            del data[at]
        else:
            data.insert(at, rng.choice(b"0123456789 "))
    header = len(data) - 8 - rng.choice((0, 4, 12))
    if rng.random() < 0.3 and header > 0:
        data[:8] = struct.pack("<Q", header)
    return bytes(data)


def check_damaged(program, folder, count):
    """Contents as well: a broken name or shape that both take must be the same to both."""
    rng = random.Random(2)
    good = file_of({"a": ("float32", [2], bytes(8)), "b": ("uint8", [2, 2], b"abcd")}, {"k": "v"})
    source, target = folder / "damaged.safetensors", folder / "copy.safetensors"
    taken = only_theirs = 0
    for i in range(count):
        data = damage(good, rng)
        source.write_bytes(data)
        target.unlink(missing_ok=True)
        done = through_octet(program, source, target)
        if done.returncode not in (0, 1) or (done.returncode == 1 and not done.stderr.strip()):
            return False, f"file {i}: exit status {done.returncode} {done.stderr.strip()}"
        try:
            theirs = contents(data)
        except safetensors.SafetensorError:
            theirs = None
        if done.returncode:
            only_theirs += theirs is not None
            continue
        taken += 1
        if theirs is None or theirs != contents(target.read_bytes()):
            return False, f"file {i} is read by octet, and {theirs} by the package: {data!r}"
    return True, f"{taken} of {count} broken files are read; {only_theirs} by the package only"


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = [("with notes", lambda: check_copy(program, folder, NOTES)),
                ("without notes", lambda: check_copy(program, folder, None)),
                ("broken files", lambda: check_damaged(program, folder, 1000))]
        n_failed = 0
        for what, job in jobs:
            passed, text = job()
            n_failed += not passed
            print(f"safetensors, {what:19s} {'passed' if passed else 'failed':8s} {text}", flush=True)
    print(f"{len(jobs) - n_failed} passed, {n_failed} failed, 0 skipped")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
