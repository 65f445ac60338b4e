#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Post-training quantization of a model of PyTorch as it is written for NNCF: only the imports differ.

usage: nncf_like.py [OUT.onnx]     (needs torch; torchvision for resnet18, else a small network)
"""
import sys

import torch

import octet as nncf
from octet.torch import disable_patching


def create_model():
    try:
        import torchvision.models as models

        return models.resnet18()
    except ImportError:
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 3, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(), torch.nn.Linear(16, 10))


model = create_model().eval()
x = torch.randn(4, 3, 64, 64).contiguous(memory_format=torch.channels_last)
example_inputs = (x,)

# Capture the FX graph to be quantized
with torch.no_grad():
    with disable_patching():
        exported_model = torch.export.export(model, example_inputs).module()

calibration_loader = torch.utils.data.DataLoader([example_inputs])


def transform_fn(data_item):
    # labels, if there are any, are left out here: images, _ = data_item
    return data_item


calibration_dataset = nncf.Dataset(calibration_loader, transform_fn)

with disable_patching():
    quantized_model = nncf.quantize(exported_model, calibration_dataset)

# The other parameters, in the same words
nncf.quantize(exported_model, calibration_dataset, model_type=nncf.ModelType.Transformer)
nncf.quantize(exported_model, calibration_dataset, preset=nncf.QuantizationPreset.MIXED)
nncf.quantize(exported_model, calibration_dataset, fast_bias_correction=False)
nncf.quantize(exported_model, calibration_dataset, subset_size=1000)
names = [layer["name"] for layer in quantized_model.layers]
nncf.quantize(exported_model, calibration_dataset, ignored_scope=nncf.IgnoredScope(names=names[:1]))
nncf.quantize(exported_model, calibration_dataset, ignored_scope=nncf.IgnoredScope(types=["Linear"]))
regex = f".*{names[-1]}.*"
nncf.quantize(exported_model, calibration_dataset, ignored_scope=nncf.IgnoredScope(patterns=regex))
subgraph = nncf.Subgraph(inputs=names[:1], outputs=names[:1])
nncf.quantize(exported_model, calibration_dataset,
              ignored_scope=nncf.IgnoredScope(subgraphs=[subgraph]))
nncf.quantize(exported_model, calibration_dataset, target_device=nncf.TargetDevice.CPU)

# octet runs it: no other runtime is needed
quantized = torch.from_dlpack(quantized_model(*example_inputs))
with torch.no_grad():
    exact = model(x)
print(quantized_model)
print(f"largest difference {(exact - quantized).abs().max():.4f}, "
      f"largest value {exact.abs().max():.4f}")
if len(sys.argv) > 1:
    quantized_model.save(sys.argv[1])
