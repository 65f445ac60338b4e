# SPDX-License-Identifier: Apache-2.0
"""Holds octet against ONNX Runtime on random networks.

usage: check_random.py RANDOM_GRAPHS [--count N] [--first SEED] [--kinds float,open,codes,corners]

RANDOM_GRAPHS (tests/random) writes networks, inputs and octet's answers; ONNX Runtime answers the
same question as the file stands, without its own optimisations. Where the two differ, the reference
evaluator of the package onnx is the judge: a network on which it sides with octet passes if it holds an
operator of KNOWN, whose difference docs/differences.md describes, and fails otherwise. Ends with
`N passed, N failed, N skipped`, a network each; those that ONNX Runtime refuses are skipped.
"""

import argparse
import collections
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import onnxruntime as ort

BATCH = 250

# Where ONNX Runtime does not do what the text says.
KNOWN = {"Resize"}


def run_ort(path, inputs):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def run_reference(path, inputs):
    return onnx.reference.ReferenceEvaluator(str(path)).run(None, inputs)


def differs(kind, got, want):
    """The largest difference as text, or None: the same limits as in random_graphs.c."""
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if not want.size:
        return None
    is_code = want.dtype.kind != "f"
    exact = kind in ("float", "open")
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = want[np.isfinite(want)]
    top = max(1e-3 if exact else 0.2, np.max(np.abs(finite), initial=0))
    each, most = (2e-4, 2e-4) if exact else (8, 1) if is_code else (0.12, 0.03)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    error = np.where(same, 0, np.abs(np.where(same, 0, got - want)) / (1 if is_code else top))
    error = np.where(np.isfinite(error), error, np.inf)
    far = int(np.sum(error > most))
    if error.max() <= each and far <= error.size // 50 + 1:
        return None
    at = np.unravel_index(np.argmax(error), error.shape)
    return f"{far} of {error.size} elements; {got[at]:.7g} instead of {want[at]:.7g}"


def any_difference(kind, got, want):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        found = differs(kind, a, b)
        if found:
            return f"output {k}: {found}"
    return None


def operators(path):
    return " ".join(sorted({n.op_type for n in onnx.load(path).graph.node}))


def check(kind, path, counts):
    """Compares one network; counts what came of it."""
    stem = str(path)[: -len(".onnx")]
    session_inputs = [i.name for i in onnx.load(path).graph.input]
    inputs = {name: np.load(f"{stem}.in.{i}.npy") for i, name in enumerate(session_inputs)}
    outs = sorted(path.parent.glob(f"{path.stem}.out.*.npy"), key=lambda p: int(p.suffixes[-2][1:]))
    if not outs:
        counts["no answer"] += 1
        return
    ours = [np.load(p) for p in outs]
    try:
        theirs = run_ort(path, inputs)
    except Exception as e:  # noqa: BLE001 - whatever ONNX Runtime raises means that it refuses
        counts["refused by ONNX Runtime"] += 1
        counts["  " + re.sub(r"(/\S+|Name:'[^']*'|\d+)", "..", str(e).splitlines()[0])[:120]] += 1
        return
    found = any_difference(kind, ours, theirs)
    if not found:
        counts["equal"] += 1
        return
    try:
        judge = any_difference(kind, ours, run_reference(path, inputs))
    except Exception as e:  # noqa: BLE001
        judge = f"the reference evaluator fails: {e}"
    if judge is None and KNOWN & set(operators(path).split()):
        counts["ONNX Runtime differs as known"] += 1
    elif judge is None:
        counts["octet differs"] += 1
        print(f"{kind} {path.stem}: not known: {found}; the reference sides with octet; "
              f"{operators(path)}")
    else:
        counts["octet differs"] += 1
        print(f"{kind} {path.stem}: {found}; the reference: {judge}; {operators(path)}")


def run_kind(program, kind, first, count, counts):
    for at in range(first, first + count, BATCH):
        with tempfile.TemporaryDirectory() as folder:
            n = min(BATCH, first + count - at)
            done = subprocess.run([program, kind, str(at), str(n), "--write", folder],
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                counts["wrong in octet itself"] += 1
                print(done.stdout.strip() or done.stderr.strip())
            for path in sorted(Path(folder).glob("*.onnx"), key=lambda p: int(p.stem)):
                check(kind, path, counts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--kinds", default="float,open,codes,corners")
    a = parser.parse_args()
    total = collections.Counter()
    for kind in a.kinds.split(","):
        counts = collections.Counter()
        run_kind(a.program, kind, a.first, a.count, counts)
        print(f"{kind}: " + ", ".join(f"{v} {k.strip()}" for k, v in counts.most_common()
                                      if not k.startswith("  ")))
        for k, v in counts.most_common():
            if k.startswith("  "):
                print(f"{k.strip()}: {v}")
        total += counts
    failed = total["octet differs"] + total["wrong in octet itself"] + total["no answer"]
    print(f"{total['equal'] + total['ONNX Runtime differs as known']} passed, {failed} failed, "
          f"{total['refused by ONNX Runtime']} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
