# SPDX-License-Identifier: Apache-2.0
"""Recurrent networks for check_openvino.py: LSTM, GRU and RNN as ONNX, and cells that only IR has."""

import itertools

import numpy as np
import openvino
from onnx import TensorProto, helper, numpy_helper

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, INPUT, HIDDEN = 5, 3, 4, 2
RANDOM = np.random.default_rng(3)


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def network(op, direction, lengths, attributes):
    """One node that reads x; lengths, too, are a constant of the file."""
    dirs, gates = 2 if direction == "bidirectional" else 1, GATES[op]
    fixed = {"w": numbers(dirs, gates * HIDDEN, INPUT), "r": numbers(dirs, gates * HIDDEN, HIDDEN),
             "b": numbers(dirs, 2 * gates * HIDDEN)}
    if lengths:
        fixed["lengths"] = np.array([STEPS, 1, 3], np.int32)
    outputs = ["y", "h", "c"][:3 if op == "LSTM" else 2]
    node = helper.make_node(op, ["x", "w", "r", "b", "lengths" if lengths else ""], outputs,
                            direction=direction, hidden_size=HIDDEN, **attributes)
    graph = helper.make_graph(
        [node], op,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, BATCH, INPUT])],
        [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
        [numpy_helper.from_array(v, k) for k, v in fixed.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def networks():
    """Name, network and whether octet writes it as IR."""
    for op, direction, lengths in itertools.product(
            GATES, ("forward", "reverse", "bidirectional"), (False, True)):
        name = f"{op} {direction}{', lengths' if lengths else ''}"
        yield name, network(op, direction, lengths, {}), True
    dirs = "bidirectional"
    yield "GRU, reset after", network("GRU", dirs, True, {"linear_before_reset": 1}), True
    yield "LSTM, clipped", network("LSTM", dirs, True, {"clip": 0.5}), True
    yield ("LSTM, activations", network("LSTM", dirs, True, {
        "activations": 2 * ["HardSigmoid", "Tanh", "Relu"], "activation_alpha": [0.3, 0.3],
        "activation_beta": [0.4, 0.4]}), False)


def cells():
    """Name and IR network of one step; inputs are x, h (and c)."""
    ops = openvino.opset13
    x = ops.parameter([BATCH, INPUT], np.float32, name="x")
    states = [ops.parameter([BATCH, HIDDEN], np.float32, name=n) for n in "hc"]
    for op, gates in GATES.items():
        for apart in (False, True) if op == "GRU" else (False,):
            used = states[:2 if op == "LSTM" else 1]
            fixed = [ops.constant(numbers(gates * HIDDEN, INPUT)),
                     ops.constant(numbers(gates * HIDDEN, HIDDEN)),
                     ops.constant(numbers((gates + apart) * HIDDEN))]
            if op == "LSTM":
                cell = ops.lstm_cell(x, *used, *fixed, HIDDEN)
            elif op == "GRU":
                cell = ops.gru_cell(x, *used, *fixed, HIDDEN, linear_before_reset=apart)
            else:
                cell = ops.rnn_cell(x, *used, *fixed, HIDDEN, ["tanh"], [], [])
            for port, name in zip(cell.outputs(), ("next_h", "next_c")):
                port.set_names({name})
            yield (f"{op}Cell{', reset after' if apart else ''}",
                   openvino.Model(cell.outputs(), [x, *used], op))
