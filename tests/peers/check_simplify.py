# SPDX-License-Identifier: Apache-2.0
"""Holds `octet simplify` against onnxsim, onnx.checker and ONNX Runtime.

usage: check_simplify.py OCTET

Five networks: at most as many nodes as onnxsim leaves (constants not counted), outputs within 1e-5
of their largest magnitude, the file valid by a full check. The YOLO-NAS in training form: what
must be left of it, and PyTorch's answers. Ends with `N passed, N failed, N skipped`.
"""

import collections
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import onnxsim

import peers

NAMES = ["yolov8n", "yolox_nano_416", "picodet_s_416", "nanodet_m_416", "mobilenet_v1_0.25_224"]
TOLERANCE = 1e-5


def n_nodes(model):
    return sum(n.op_type != "Constant" for n in model.graph.node)


def simplify(octet, source, target):
    done = subprocess.run([octet, "simplify", str(source), str(target)], capture_output=True,
                          text=True, timeout=600)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip())
    onnx.checker.check_model(str(target), full_check=True)
    return onnx.load(target)


def run_ort(path, inputs):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    # As written, so that it is the file that is compared and not ONNX Runtime's own folding.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def worst_error(got, want):
    if got.keys() != want.keys():
        raise RuntimeError(f"outputs {sorted(got)} instead of {sorted(want)}")
    return max(float(np.max(np.abs(got[k] - want[k]))) / float(np.max(np.abs(want[k])))
               for k in want)


def check_network(octet, name, folder):
    network = peers.by_name(name)
    target = Path(folder) / "simplified.onnx"
    ours = simplify(octet, network.file, target)
    theirs, _ = onnxsim.simplify(onnx.load(network.file))
    before, after, peer = n_nodes(onnx.load(network.file)), n_nodes(ours), n_nodes(theirs)
    worst = max(worst_error(run_ort(target, i), run_ort(network.file, i))
                for i in peers.inputs_of(network))
    text = f"{before:4d} nodes -> {after:4d}, onnxsim {peer:4d}; outputs moved {worst:.1e}"
    return after <= peer and worst <= TOLERANCE, text


def check_counts(octet, folder):
    """The training form must lose its branches, its BatchNorms and its shape arithmetic."""
    target = Path(folder) / "yolo_nas.onnx"
    model = simplify(octet, peers.by_name("yolo_nas_bccd_train").file, target)
    ops = collections.Counter(n.op_type for n in model.graph.node)
    gone = ["BatchNormalization", "Shape", "Expand", "Unsqueeze"]
    passed = ops["Conv"] == 81 and ops["ConvTranspose"] == 2 and not any(ops[o] for o in gone)
    text = ", ".join(f"{n} {o}" for o, n in
                     [(o, ops[o]) for o in ["Conv", "ConvTranspose"] + gone])
    return passed, f"{text}; {n_nodes(model)} nodes"


def check_expected(octet, model, folder):
    """octet's own run against PyTorch's outputs: boxes within 0.002 pixel, scores within 1e-5."""
    data = peers.DATA / "yolo-nas"
    boxes, scores = 0.0, 0.0
    for i in range(2):
        got = peers.octet_run(octet, model, {"input": np.load(data / f"expected_input{i}.npy")},
                              folder)
        boxes = max(boxes, np.max(np.abs(got["boxes.npy"] - np.load(data / f"expected_boxes{i}.npy"))))
        scores = max(scores,
                     np.max(np.abs(got["scores.npy"] - np.load(data / f"expected_scores{i}.npy"))))
    return boxes <= 0.002 and scores <= 1e-5, f"boxes {boxes:.1e} pixel, scores {scores:.1e}"


def main():
    octet = sys.argv[1]
    peers.need_shared("check_simplify")
    train = peers.by_name("yolo_nas_bccd_train").file
    with tempfile.TemporaryDirectory() as folder:
        jobs = [(name, lambda name=name: check_network(octet, name, folder)) for name in NAMES]
        jobs += [
            ("yolo_nas_bccd_train", lambda: check_counts(octet, folder)),
            ("  as it is, in octet", lambda: check_expected(octet, train, folder)),
            ("  simplified, in octet",
             lambda: check_expected(octet, Path(folder) / "yolo_nas.onnx", folder)),
            ("  the folded file, in octet",
             lambda: check_expected(octet, peers.by_name("yolo_nas_bccd_folded").file, folder)),
        ]
        n_failed = 0
        for name, job in jobs:
            try:
                passed, text = job()
            except (RuntimeError, OSError, onnx.checker.ValidationError) as error:
                passed, text = False, str(error)
            n_failed += not passed
            print(f"{name:32s} {'passed' if passed else 'failed':8s} {text}", flush=True)
    print(f"{len(jobs) - n_failed} passed, {n_failed} failed, 0 skipped")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
