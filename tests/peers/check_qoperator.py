# SPDX-License-Identifier: Apache-2.0
"""Files that other tools quantized, in the forms that octet does not write itself.

usage: check_qoperator.py OCTET [NAME...]

ONNX Runtime's own tool makes networks of integer operators (QLinearConv, QLinearConcat ...) with
unsigned and with signed activations. Every output must be ONNX Runtime's, bit for bit, on a real
picture. Weights are unsigned or of 7 bits, so that ONNX Runtime's sums saturate on no CPU.
A copy of a QDQ network whose weights are floats that QuantizeLinear reads, as quantization-aware
training exports them, must give the answers of the original and become as small by `simplify`.
One line for each file, then `N passed, N failed, N skipped`.
"""

import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper
from onnxruntime import quantization

import check_models
import peers

SIGNED, UNSIGNED = quantization.QuantType.QInt8, quantization.QuantType.QUInt8
FORMS = {"u8u8": (UNSIGNED, UNSIGNED, False, False), "u8s7": (UNSIGNED, SIGNED, True, True),
         "s8s7": (SIGNED, SIGNED, False, True)}
INTEGER_OPERATORS = [("yolov8n", "s8s7"), ("nanodet_m_416", "u8u8"), ("nanodet_m_416", "s8s7"),
                     ("yolox_nano_416", "u8s7"), ("mobilenet_v1_0.25_224", "s8s7")]
FLOAT_WEIGHTS = ["yolov8n_qdq_int8", "yolov8n_qdq_allops_broken"]


class Pictures(quantization.CalibrationDataReader):
    def __init__(self, network):
        self.left = iter(peers.inputs_of(network, 2))

    def get_next(self):
        return next(self.left, None)


def make_integer_operators(network, form, path):
    activations, weights, per_channel, reduce_range = FORMS[form]
    quantization.quantize_static(
        network.file, path, Pictures(network), quant_format=quantization.QuantFormat.QOperator,
        activation_type=activations, weight_type=weights, per_channel=per_channel,
        reduce_range=reduce_range)


def check_integer_operators(octet, network, form, folder):
    path = Path(folder, "qoperator.onnx")
    make_integer_operators(network, form, path)
    session = check_models.make_session(path, False, False)
    names = [o.name for o in session.get_outputs()]
    inputs = peers.inputs_of(network, 3)[-1]
    files = peers.octet_run(octet, path, inputs, folder)
    shares = [float(np.mean(files[peers.file_name(name)] != want))
              for name, want in zip(names, session.run(None, inputs))]
    return max(shares) == 0, f"{max(shares):8.3%} differ"


def float_weights(path, out):
    """Each 8-bit weight as floats that a QuantizeLinear turns into the same codes."""
    model = onnx.load(path)
    graph = model.graph
    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    nodes, random = [], np.random.default_rng(1)
    for node in graph.node:
        codes = constants.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if codes is not None and codes.dtype.itemsize == 1:
            scale, zero = (constants[name].astype(np.float32) for name in node.input[1:3])
            if scale.size > 1:
                axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
                shape = [-1 if i == axis else 1 for i in range(codes.ndim)]
                scale, zero = scale.reshape(shape), zero.reshape(shape)
            numbers = (codes - zero + random.uniform(-0.3, 0.3, codes.shape)) * scale
            name = node.output[0] + "_float"
            graph.initializer.append(numpy_helper.from_array(numbers.astype(np.float32), name))
            copy = helper.make_node("QuantizeLinear", [name, *node.input[1:3]], [name + "_codes"])
            copy.attribute.extend(node.attribute)
            nodes.append(copy)
            node.input[0] = name + "_codes"
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in nodes for name in node.input}
    kept = [i for i in graph.initializer if i.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    onnx.save(model, out)


def check_float_weights(octet, network, folder):
    path, small = Path(folder, "float_weights.onnx"), Path(folder, "small.onnx")
    float_weights(network.file, path)
    inputs = peers.inputs_of(network, 1)[0]
    want = peers.octet_run(octet, network.file, inputs, folder)
    got = peers.octet_run(octet, path, inputs, folder)
    subprocess.run([octet, "simplify", path, small, "--force", "--quiet"], check=True)
    size = small.stat().st_size / network.file.stat().st_size
    same = all(np.array_equal(got[name], a) for name, a in want.items())
    return same and size < 1.05, f"{'same' if same else 'other'} answers, {size:.2f} of the size"


def cases(octet, folder):
    for name, form in INTEGER_OPERATORS:
        network = peers.by_name(name)
        yield f"{name} {form}", network, lambda n=network, f=form: check_integer_operators(
            octet, n, f, folder)
    for name in FLOAT_WEIGHTS:
        network = peers.by_name(name)
        yield f"{name} float weights", network, lambda n=network: check_float_weights(
            octet, n, folder)


def main():
    octet, chosen = sys.argv[1], sys.argv[2:]
    peers.need_shared("check_qoperator")
    logging.disable(logging.WARNING)
    ort.set_default_logger_severity(4)
    count = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        for title, network, check in cases(octet, folder):
            if chosen and network.name not in chosen:
                continue
            try:
                passed, text = check() if network.file.exists() else (None, "is not there")
                verdict = "skipped" if passed is None else "passed" if passed else "failed"
            except (RuntimeError, OSError, KeyError, subprocess.CalledProcessError) as error:
                verdict, text = "failed", str(error)
            count[verdict] += 1
            print(f"{title:40s} {verdict:8s} {text}", flush=True)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
