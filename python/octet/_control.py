# SPDX-License-Identifier: Apache-2.0
"""Promises: accuracy stays within a limit, and as few layers as possible are float for it."""
from __future__ import annotations

import os
import tempfile
import warnings
from typing import Any, Callable, Optional

from . import _octet
from ._data import opened
from ._network import Network
from ._nncf import word

PROMISES = ("max_drop", "min_repeat", "max_noise")
LEAST = 1e-9  # a limit of 0 would say that nothing is promised


def promise_settings(given: dict[str, Any], max_drop: Optional[float], drop_type: Any, measure: Any,
                     truth: Any, annotations: Any) -> None:
    """Adds what is promised to the settings, and checks that it can be measured."""
    if sum(bool(given.get(k)) for k in PROMISES) + (max_drop is not None) > 1:
        raise TypeError(f"a network keeps one promise: give one of {', '.join(PROMISES)}")
    if drop_type is not None:
        given["drop_type"] = str(word(drop_type)).lower()
    if max_drop is None:
        if measure is not None:
            raise TypeError("measure= goes with max_drop=: how much it may become less")
        return
    if measure is not None and not callable(measure):
        raise TypeError("measure is a function of a network that returns a number")
    if measure is None and annotations is None and getattr(truth, "annotations", None) is None:
        raise TypeError("max_drop needs labels (truth=, annotations=) or a function (measure=); "
                        "without any, min_repeat=0.98 promises to repeat the float network's own "
                        "detections")
    given["max_drop"] = max_drop or LEAST


def promises(given: dict[str, Any]) -> bool:
    return any(given.get(k) for k in PROMISES)


def search(net: Network, images: "_octet.Dataset", text: str,
           measure: Optional[Callable[[Network], float]], truth: Any, annotations: Any,
           threads: int) -> tuple["_octet.Quantized", dict[str, Any]]:
    has_labels = annotations is not None or getattr(truth, "annotations", None) is not None
    labelled = opened(truth, net, annotations=annotations) if has_labels else None
    with tempfile.TemporaryDirectory(prefix="octet-") as folder:
        path = os.path.join(folder, "model.onnx")

        def ask() -> float:
            """The network at work is not free to be used: its copy is."""
            with open(path, "rb") as f:
                copy = _octet.load_bytes(_octet.Context(threads), f.read())
            return measure(Network(copy))  # type: ignore[misc]

        raw, promise = _octet.quantize_controlled(
            net._raw, images, text, net._source, labelled, ask if measure is not None else None,
            path, getattr(measure, "__name__", "measure"))
    if not promise["holds"]:
        warnings.warn(f"the promise cannot be kept: {promise['score']:.4g} is the best of "
                      f"{promise['scores']} networks, {promise['need']:.4g} was asked for",
                      stacklevel=3)
    return raw, promise
