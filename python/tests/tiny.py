# SPDX-License-Identifier: Apache-2.0
"""Small ONNX models written by hand: the tests need neither the onnx package nor files."""
import struct

import numpy

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
         "float64": 11, "bfloat16": 16}


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def value(name, dtype, shape):
    dims = b"".join(field(1, field(1 if isinstance(d, int) else 2, d)) for d in shape)
    return field(1, name) + field(2, field(1, field(1, TYPES[dtype]) + field(2, dims)))


def tensor(name, array):
    return (b"".join(field(1, d) for d in array.shape) + field(2, TYPES[str(array.dtype)]) +
            field(8, name) + field(9, array.tobytes()))


def attribute(name, number):
    if isinstance(number, list):
        return field(1, name) + b"".join(field(8, n) for n in number) + field(20, 7)
    return field(1, name) + field(3, number) + field(20, 2)


def node(op, inputs, outputs, name="", **attributes):
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) +
            field(3, name) + field(4, op) +
            b"".join(field(5, attribute(k, v)) for k, v in attributes.items()))


def model(nodes, inputs, outputs, weights=()):
    graph = (b"".join(field(1, n) for n in nodes) + field(2, "tiny") +
             b"".join(field(5, tensor(n, a)) for n, a in weights) +
             b"".join(field(11, value(*v)) for v in inputs) +
             b"".join(field(12, value(*v)) for v in outputs))
    return field(1, 8) + field(2, "tests") + field(7, graph) + field(8, field(2, 17))


def identity(shape=(2, 3), dtype="float32"):
    return model([node("Identity", ["x"], ["y"])], [("x", dtype, shape)], [("y", dtype, shape)])


def add(shape=(2, 3)):
    return model([node("Add", ["a", "b"], ["sum"]), node("Mul", ["a", "b"], ["product"])],
                 [("a", "float32", shape), ("b", "float32", shape)],
                 [("sum", "float32", shape), ("product", "float32", shape)])


def nonzero():
    """The shape of its output is known only after a run."""
    return model([node("NonZero", ["x"], ["where"])], [("x", "float32", (4,))],
                 [("where", "int64", (1, "n"))])


def convolutions(batch=1, size=16, n=3, channels=8):
    """Convolutions with ReLU: something to quantize."""
    generator = numpy.random.default_rng(0)
    nodes, weights, last, last_channels = [], [], "images", 3
    for i in range(n):
        w = generator.standard_normal((channels, last_channels, 3, 3)).astype("float32") / 5
        b = generator.standard_normal(channels).astype("float32") / 10
        weights += [(f"w{i}", w), (f"b{i}", b)]
        nodes.append(node("Conv", [last, f"w{i}", f"b{i}"], [f"c{i}"], name=f"/block{i}/conv",
                          kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        last = "y" if i == n - 1 else f"r{i}"
        nodes.append(node("Relu", [f"c{i}"], [last], name=f"/block{i}/relu"))
        last_channels = channels
    return model(nodes, [("images", "float32", (batch, 3, size, size))],
                 [("y", "float32", (batch, channels, size, size))], weights)
