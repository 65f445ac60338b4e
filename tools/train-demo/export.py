# SPDX-License-Identifier: Apache-2.0
"""Writes the demo's network with random weights as ONNX: nothing folded, BatchNorm kept."""
import argparse

import onnx
import torch

from model import Detector


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("onnx")
    p.add_argument("--names", help="file with the classes, one a line, for the metadata")
    p.add_argument("--size", type=int, default=256)
    a = p.parse_args()

    torch.onnx.export(Detector().eval(), (torch.zeros(1, 3, a.size, a.size),), a.onnx,
                      opset_version=13, input_names=["image"], output_names=["boxes", "scores"],
                      dynamo=False, training=torch.onnx.TrainingMode.PRESERVE,
                      do_constant_folding=False)
    net = onnx.load(a.onnx)
    net.graph.name = "demo"
    if a.names:
        with open(a.names) as f:
            names = dict(enumerate(f.read().split()))
        net.metadata_props.add(key="names", value=str(names))
    onnx.checker.check_model(net)
    onnx.save(net, a.onnx)


if __name__ == "__main__":
    main()
