# SPDX-License-Identifier: Apache-2.0
"""What other runtimes make of a file: detections or classes, latency, and kinds of convolutions."""

import json
import statistics
from pathlib import Path

import numpy as np
import onnx

import bench_peers
import boxes

SPEED_ROUNDS = 4  # of five runs each, in turns


def make_onnxruntime(path, threads):
    """Waiting threads that spin are fast on a machine of one's own, and slow on a busy one."""
    return bench_peers.make_onnxruntime(path, threads, spin=False)


MAKERS = {"onnxruntime": make_onnxruntime, "openvino": bench_peers.make_openvino}


def outputs_of(path, runtime, threads, task, inputs):
    """For each picture in turn, its number and the network's outputs, good until the next."""
    run = MAKERS[runtime](str(path), threads)
    for i in range(len(inputs)):
        answer = run({task.network.input: inputs[i]})
        yield i, [answer[k] for k in range(len(answer))]


def detections(path, runtime, threads, task, inputs):
    """The entries of a COCO results file."""
    found = []
    for i, outputs in outputs_of(path, runtime, threads, task, inputs):
        width, height = inputs.sizes[i]
        place = inputs.prepare.place(width, height)
        corners, scores = task.decode(outputs, inputs.prepare.size)
        for box, score, k in zip(*boxes.detect(corners, scores, place, width, height)):
            found.append({"image_id": task.ids[i], "category_id": task.categories[k],
                          "bbox": [round(float(v), 3) for v in box], "score": float(score)})
    return found


def top1(path, runtime, threads, task, inputs):
    return float(np.mean([np.argmax(outputs[0]) == task.ids[i] for i, outputs in
                          outputs_of(path, runtime, threads, task, inputs)]))


def accuracy(path, runtime, threads, task, inputs, octet, work):
    """AP, by `octet score`; or the share of right classes."""
    if not task.decode:
        return top1(path, runtime, threads, task, inputs)
    results = Path(work) / "results.json"
    results.write_text(json.dumps(detections(path, runtime, threads, task, inputs)))
    return octet.score(task, results)


def without_weights_as_inputs(path, out):
    """ONNX Runtime does not fuse weights that are also inputs: a fair float file has none."""
    model = onnx.load(path)
    weights = {w.name for w in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    onnx.save(model, out)
    return out


def latency(files, threads):
    """Median milliseconds of each file in ONNX Runtime; they take turns."""
    times = {name: [] for name in files}
    for _ in range(SPEED_ROUNDS):
        for name, path in files.items():
            times[name].append(bench_peers.measure("onnxruntime", None, str(path), threads, 0))
    return {name: statistics.median(ms) for name, ms in times.items()}


def convolutions(path, work):
    """How many convolutions ONNX Runtime computes in integers, and how many in float."""
    import onnxruntime as ort
    out = Path(work) / "optimized.onnx"
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(out)
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    kinds = [n.op_type for n in onnx.load(out).graph.node]
    integer = sum(k in ("QLinearConv", "ConvInteger") for k in kinds)
    return integer, sum("Conv" in k for k in kinds) - integer
