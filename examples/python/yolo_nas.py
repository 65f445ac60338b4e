#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A detector quantized whole and in part, scored, with its boxes decoded: what SuperGradients' users
do with OpenVINO, where layers to skip have the names of the module tree.

usage: yolo_nas.py MODEL.onnx PICTURES ANNOTATIONS [SKIP_MODULE...]

as in yolo_nas.py yolo_nas_s.onnx val instances_val.json heads.head1.reg_convs heads.head1.cls_convs
"""
import pathlib
import sys

import octet

if len(sys.argv) < 4:
    sys.exit(__doc__)
model, pictures, annotations, *skip = sys.argv[1:]
net = octet.load(model)
data = octet.Dataset(pictures, limit=100)
results = {"float": net, "INT8": octet.quantize(net, data, subset_size=100)}
if skip:  # names of modules work as names of nodes do; patterns too: heads.*reg_pred
    results["INT8, selective"] = octet.quantize(
        net, data, subset_size=100, ignored_scope=octet.IgnoredScope(names=skip))
for name, network in results.items():
    figures = octet.evaluate(network, pictures, annotations)
    print(f"{name:16} AP {figures['ap']:.4f}  AP50 {figures['ap50']:.4f}")

# Which layers cost most, and what to do about it
analysis = octet.analyze(results["INT8"], data=data, images=8)
for row in sorted(analysis.layers, key=lambda r: -(r["alone_noise"] or 0))[:5]:
    print(f"{row['name']:60} {row['alone_noise'] or 0:.2e}")
for advice in analysis.advice[:3]:
    print(advice["text"], advice["option"])

# Postprocessing is octet's: no graph has to be attached to the file
first = sorted(pathlib.Path(pictures).iterdir())[0]
for box in octet.detect(results["INT8"], first)[:5]:
    print(f"{box['name']} {box['score']:.2f}")
