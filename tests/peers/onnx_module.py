# SPDX-License-Identifier: Apache-2.0
"""An ONNX network as a PyTorch module that can be trained: enough operators for the benchmark."""

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def symmetric(pads):
    half = len(pads) // 2
    if list(pads[:half]) != list(pads[half:]):
        raise ValueError(f"pads {pads} differ between the sides")
    return list(pads[:half])


class OnnxModule(torch.nn.Module):
    """Computes `outputs` of the file; float initializers are parameters, norms use the batch."""

    def __init__(self, path, outputs):
        super().__init__()
        graph = onnx.load(path).graph
        self.outputs = outputs
        self.input = graph.input[0].name
        self.nodes = self.upstream(graph, outputs)
        self.constants = {}
        self.stats = {}
        self.names = {}
        read = {name for node in self.nodes for name in node.input}
        running = {name for node in self.nodes if node.op_type == "BatchNormalization"
                   for name in node.input[3:5]}
        for tensor in graph.initializer:
            if tensor.name not in read:
                continue
            value = numpy_helper.to_array(tensor)
            if tensor.name in running or value.dtype != np.float32:
                self.constants[tensor.name] = torch.from_numpy(value.copy())
            else:
                self.names[tensor.name] = f"p{len(self.names)}"
                self.register_parameter(self.names[tensor.name],
                                        torch.nn.Parameter(torch.from_numpy(value.copy())))

    @staticmethod
    def upstream(graph, outputs):
        wanted, kept = set(outputs), []
        for node in reversed(graph.node):
            if wanted & set(node.output):
                kept.append(node)
                wanted |= set(node.input)
        return kept[::-1]

    def value(self, values, name):
        if name in values:
            return values[name]
        if name in self.names:
            return getattr(self, self.names[name])
        return self.constants[name]

    def forward(self, x):
        values = {self.input: x}
        for node in self.nodes:
            given = [self.value(values, name) if name else None for name in node.input]
            results = getattr(self, "op_" + node.op_type)(given, attributes(node))
            if not isinstance(results, (tuple, list)):
                results = (results,)
            values.update(zip(node.output, results))
        return [values[name] for name in self.outputs]

    def op_Conv(self, v, a):
        return F.conv2d(v[0], v[1], v[2] if len(v) > 2 else None, a.get("strides", [1, 1]),
                        symmetric(a.get("pads", [0] * 4)), a.get("dilations", [1, 1]),
                        a.get("group", 1))

    def op_ConvTranspose(self, v, a):
        return F.conv_transpose2d(v[0], v[1], v[2] if len(v) > 2 else None,
                                  a.get("strides", [1, 1]), symmetric(a.get("pads", [0] * 4)))

    def op_BatchNormalization(self, v, a):
        return F.batch_norm(v[0], v[3], v[4], v[1], v[2], True, 0.03, a.get("epsilon", 1e-5))

    def op_MaxPool(self, v, a):
        return F.max_pool2d(v[0], a["kernel_shape"], a.get("strides", [1, 1]),
                            symmetric(a.get("pads", [0] * 4)))

    def op_GlobalAveragePool(self, v, a):
        return v[0].mean((2, 3), keepdim=True)

    def op_Resize(self, v, a):
        scale = self.constant_of(v[2])[2:] if len(v) > 2 and v[2] is not None else None
        if scale is None or not scale.numel():
            return F.interpolate(v[0], size=[int(s) for s in v[3][2:]], mode="nearest")
        return F.interpolate(v[0], scale_factor=[float(s) for s in scale], mode="nearest")

    @staticmethod
    def constant_of(v):
        return v.detach()

    def op_Constant(self, v, a):
        value = torch.from_numpy(np.array(numpy_helper.to_array(a["value"])))
        return value

    def op_Split(self, v, a):
        return torch.split(v[0], [int(s) for s in v[1]], a.get("axis", 0))

    def op_Reshape(self, v, a):
        shape = [int(s) for s in v[1]]
        shape[0] = v[0].shape[0]
        return v[0].reshape(shape)

    def op_Shape(self, v, a):
        return torch.tensor(v[0].shape)

    def op_Slice(self, v, a):
        start, end, axis = int(v[1][0]), int(v[2][0]), int(v[3][0]) if len(v) > 3 else 0
        return v[0].narrow(axis, start, min(end, v[0].shape[axis]) - start)

    def op_Unsqueeze(self, v, a):
        return v[0].unsqueeze(int(v[1][0]))

    def op_Concat(self, v, a):
        return torch.cat(v, a["axis"])

    def op_Transpose(self, v, a):
        return v[0].permute(a["perm"])

    def op_Flatten(self, v, a):
        return v[0].flatten(a.get("axis", 1))

    def op_Gemm(self, v, a):
        return F.linear(v[0], v[1] if a.get("transB") else v[1].t(), v[2])

    def op_Relu(self, v, a):
        return F.relu(v[0])

    def op_Sigmoid(self, v, a):
        return torch.sigmoid(v[0])

    def op_Add(self, v, a):
        return v[0] + v[1]

    def op_Mul(self, v, a):
        return v[0] * v[1]

    def op_Identity(self, v, a):
        return v[0]
