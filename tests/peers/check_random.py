# SPDX-License-Identifier: Apache-2.0
"""Holds octet against ONNX Runtime on random networks.

usage: check_random.py RANDOM_GRAPHS [--count N] [--first SEED] [--kinds float,open,codes,corners]

RANDOM_GRAPHS (tests/random) writes networks, inputs and octet's answers; ONNX Runtime answers the
same question as the file stands, without its own optimisations (so that it sums in float, and no sum of
codes saturates on CPUs without VNNI). Where the two differ and the network has nodes on which
docs/differences.md says they do (KNOWN), it is computed again node by node, these as the text wants
them: it passes if octet's answer is that one. Of kind `odd`, networks that octet or ONNX Runtime
refuses are skipped. Ends with `N passed, N failed, N skipped`, a network each; those that ONNX Runtime
refuses are skipped.
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


def run_ort(model, inputs):
    """A path, or the bytes of a model."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


# --- what docs/differences.md says ---

def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def window_of(node):
    a = attributes(node)
    kernel = a["kernel_shape"]
    one = [1] * len(kernel)
    return list(zip(kernel, a.get("dilations", one), a.get("strides", one), strict=True))


def is_odd_same(node):
    """auto_pad SAME of windows with holes, or smaller than the stride."""
    return (node.op_type in ("MaxPool", "LpPool") and
            attributes(node).get("auto_pad", b"").startswith(b"SAME") and
            any(d > 1 or k < s for k, d, s in window_of(node)))


def run_padded(model, inputs):
    """A pooling behind the padding that the text gives for auto_pad."""
    node = model.graph.node[0]
    a = attributes(node)
    x = inputs[node.input[0]]
    pads = [(0, 0), (0, 0)]
    for size, (k, d, s) in zip(x.shape[2:], window_of(node), strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        low = (total + 1) // 2 if a["auto_pad"] == b"SAME_LOWER" else total // 2
        pads.append((low, total - low))
    least = (0 if node.op_type == "LpPool" else -np.inf if x.dtype.kind == "f" else
             np.iinfo(x.dtype).min)
    kept = [k for k in node.attribute if k.name != "auto_pad"]
    del node.attribute[:]
    node.attribute.extend(kept)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    padded = np.pad(x, pads, constant_values=least)
    y, *indices = run_ort(model.SerializeToString(), {node.input[0]: padded})
    if not indices:
        return [y]
    order = "F" if a.get("storage_order") else "C"
    planes, at = np.divmod(indices[0], np.prod(padded.shape[2:]))
    place = [p - low for p, (low, _) in zip(np.unravel_index(at, padded.shape[2:], order), pads[2:],
                                            strict=True)]
    inside = np.ravel_multi_index(place, x.shape[2:], order=order, mode="clip")
    return [y, planes * np.prod(x.shape[2:]) + inside]


FLAGS = {"keepdims", "noop_with_empty_axes", "count_include_pad", "ceil_mode", "transA", "transB",
         "allowzero", "antialias", "exclude_outside", "align_corners"}


def has_odd_flag(node):
    return any(a.name in FLAGS and a.i not in (0, 1) for a in node.attribute)


def run_with_flags(model, inputs):
    """A node whose yes is written as 1."""
    for a in model.graph.node[0].attribute:
        if a.name in FLAGS:
            a.i = int(a.i != 0)
    return run_ort(model.SerializeToString(), inputs)


def run_reference(model, inputs):
    return onnx.reference.ReferenceEvaluator(model).run(None, inputs)


def run_normalized(model, inputs):
    """InstanceNormalization in double: squares of large numbers do not fit in float."""
    constants = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    node = model.graph.node[0]
    x, scale, bias = ({**constants, **inputs}[n].astype(np.float64) for n in node.input)
    axes = tuple(range(2, x.ndim))
    shape = (1, -1) + (1,) * len(axes)
    spread = np.sqrt(x.var(axis=axes, keepdims=True) + attributes(node).get("epsilon", 1e-5))
    y = (x - x.mean(axis=axes, keepdims=True)) / spread * scale.reshape(shape) + bias.reshape(shape)
    return [y.astype(np.float32)]


# Where ONNX Runtime does not do what the text says: which nodes, and who computes them instead.
KNOWN = [
    (lambda n: n.op_type == "Resize" and attributes(n).get("coordinate_transformation_mode") in
     (b"align_corners", b"pytorch_half_pixel"), run_reference),
    (lambda n: n.op_type in ("Celu", "Slice"), run_reference),
    (lambda n: n.op_type == "InstanceNormalization", run_normalized),
    (is_odd_same, run_padded),
    (has_odd_flag, run_with_flags),
]


def judge_of(node):
    return next((run for applies, run in KNOWN if applies(node)), None)


def run_by_node(model, inputs):
    """The network's answer, each node on its own, known ones by those who do what the text says."""
    constants = {i.name: i for i in model.graph.initializer}
    values = {n: onnx.numpy_helper.to_array(c) for n, c in constants.items()} | inputs
    for node in model.graph.node:
        names = [n for n in dict.fromkeys(node.input) if n]
        feeds = {n: values[n] for n in names if n not in constants or n == node.input[0]}
        graph = onnx.helper.make_graph(
            [node], "node",
            [onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(v.dtype),
                                                v.shape) for n, v in feeds.items()],
            [onnx.helper.make_empty_tensor_value_info(n) for n in node.output if n],
            [constants[n] for n in names if n not in feeds])
        alone = onnx.helper.make_model(graph, opset_imports=model.opset_import,
                                       ir_version=model.ir_version)
        run = judge_of(node)
        results = run(alone, feeds) if run else run_ort(alone.SerializeToString(), feeds)
        values.update(zip([n for n in node.output if n], results, strict=True))
    return [values[o.name] for o in model.graph.output]


def differs(kind, got, want):
    """The largest difference as text, or None: the same limits as in random_graphs.c. Of odd networks,
    what is not finite is not compared: a zero times infinity may be left out of a sum."""
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if not want.size:
        return None
    is_code = want.dtype.kind != "f"
    exact = kind in ("float", "open", "odd float")
    got, want = got.astype(np.float64), want.astype(np.float64)
    finite = want[np.isfinite(want)]
    top = max(1e-3 if exact else 0.2, np.max(np.abs(finite), initial=0))
    each, most = (2e-4, 2e-4) if exact else (8, 1) if is_code else (0.12, 0.03)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if kind.startswith("odd"):
        same |= ~np.isfinite(got) | ~np.isfinite(want)
    far_by = np.abs(np.where(same, 0, got) - np.where(same, 0, want))
    error = far_by / (1 if is_code else top)
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


def operators(model):
    return " ".join(sorted({n.op_type for n in model.graph.node}))


def limits_of(kind, model):
    """Odd networks are of any kind: those of codes tell by their operators."""
    if kind != "odd":
        return kind
    return "odd codes" if "QuantizeLinear" in operators(model) else "odd float"


def check(kind, path, counts):
    """Compares one network; counts what came of it."""
    stem = str(path)[: -len(".onnx")]
    outs = sorted(path.parent.glob(f"{path.stem}.out.*.npy"), key=lambda p: int(p.suffixes[-2][1:]))
    if not outs:
        counts["refused by octet" if kind == "odd" else "no answer"] += 1
        return
    model = onnx.load(path)
    kind = limits_of(kind, model)
    inputs = {x.name: np.load(f"{stem}.in.{i}.npy") for i, x in enumerate(model.graph.input)}
    ours = [np.load(p) for p in outs]
    try:
        theirs = run_ort(str(path), inputs)
    except Exception as e:  # noqa: BLE001 - whatever ONNX Runtime raises means that it refuses
        counts["refused by ONNX Runtime"] += 1
        counts["  " + re.sub(r"(/\S+|Name:'[^']*'|\d+)", "..", str(e).splitlines()[0])[:120]] += 1
        return
    found = any_difference(kind, ours, theirs)
    if not found:
        counts["equal"] += 1
        return
    if any(judge_of(n) for n in model.graph.node):
        try:
            found = any_difference(kind, ours, run_by_node(model, inputs))
        except Exception as e:  # noqa: BLE001
            found += f"; node by node: {str(e).splitlines()[0]}"
        if not found:
            counts["ONNX Runtime differs as known"] += 1
            return
    counts["octet differs"] += 1
    print(f"{kind} {path.stem}: {found}; {operators(model)}", flush=True)


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
          f"{total['refused by ONNX Runtime'] + total['refused by octet']} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
