# SPDX-License-Identifier: Apache-2.0
"""octet: takes a trained network, returns a smaller, faster INT8 one, and runs both.

    net = octet.load("model.onnx")
    q = octet.quantize(net, "calibration_pictures")
    q.save("model_int8.onnx")
    boxes = octet.detect(q, "picture.jpg")

docs/python.md has the whole of it.
"""
from ._analyze import Analysis, analyze, report
from ._data import Dataset
from ._evaluate import Detector, Evaluation, detect, evaluate
from ._network import Network, Value, load
from ._nncf import (
    AdvancedQuantizationParameters,
    DropType,
    IgnoredScope,
    ModelType,
    QuantizationPreset,
    Subgraph,
    TargetDevice,
)
from ._octet import Error, Tensor
from ._octet import choices as _choices
from ._octet import machine, settings
from ._octet import synth as _synth
from ._octet import version as __version__
from ._prune import Pruned, prune
from ._quantize import Quantized, quantize, quantize_with_accuracy_control
from ._session import Session, empty
from ._train import Training, qat, train


def choices(kind=None):
    """What there is to choose from (targets, ranges, families, ...), with help."""
    return _choices() if kind is None else _choices()[kind]


def synth(folder, split="val", count=200, size=256, seed=0):
    """Writes labelled pictures to try things with: FOLDER/SPLIT/*.jpg and FOLDER/SPLIT.json. Returns
    the number of pictures and of objects."""
    return _synth(folder, split, count, size, seed)


__all__ = [
    "AdvancedQuantizationParameters", "Analysis", "Dataset", "Detector", "DropType", "Error",
    "Evaluation", "IgnoredScope", "ModelType", "Network", "Pruned", "QuantizationPreset", "Quantized", "Session",
    "Subgraph", "TargetDevice", "Tensor", "Training", "Value", "analyze", "choices", "detect",
    "empty", "evaluate", "load", "machine", "prune", "qat", "quantize",
    "quantize_with_accuracy_control", "report", "settings", "synth", "train",
]
