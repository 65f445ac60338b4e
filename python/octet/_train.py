# SPDX-License-Identifier: Apache-2.0
"""Training, float and quantization-aware: a job runs epoch by epoch."""
from __future__ import annotations

from typing import Any, Callable, Iterator, Optional

from . import _html, _octet
from ._data import opened
from ._network import Network
from ._nncf import scope_settings
from ._progress import Progress, shown
from ._session import _network_of
from ._settings import settings_text


class Training:
    """A job. Iterating trains it: each epoch gives a dict (epoch, loss, rate, ...)."""

    def __init__(self, raw: "_octet.Training", context: Any, progress: Progress):
        self._raw = raw
        self._context = context
        self._progress = progress
        self.epochs: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while not self._raw.is_done():
            with shown(self._context, self._progress):
                epoch = self._raw.run()
            self.epochs.append(epoch)
            yield epoch

    def run(self) -> "Training":
        """Trains all epochs that are left."""
        for _ in self:
            pass
        return self

    @property
    def network(self) -> Network:
        """The network as it is now: averaged weights if there are such; quantized by qat()."""
        return Network(self._raw.graph())

    @property
    def facts(self) -> dict[str, Any]:
        return self._raw.facts()

    def save(self, path: Any) -> None:
        """Writes a checkpoint: everything the job needs to go on."""
        self._raw.save(path)

    def resume(self, path: Any) -> "Training":
        """Goes on from a checkpoint; the job must be new."""
        self._raw.resume(path)
        return self

    def _repr_html_(self) -> str:
        return _html.table(("epoch", "loss", "rate", "seconds"),
                           [(e["epoch"], e["loss"], e["rate"], e["seconds"]) for e in self.epochs])


def _job(model: Any, data: Any, annotations: Any, calibration: Any, is_qat: bool,
         progress: Progress, common: dict[str, Any], others: dict[str, Any]) -> Training:
    net = _network_of(model)
    context = net._raw.context
    text = settings_text(**common, **others)
    with shown(context, progress):
        images = opened(data, net, annotations=annotations)
        seen = opened(calibration, net, 300) if calibration is not None else None
        raw = _octet.Training(net._raw, images, seen, text, is_qat, net._source)
    return Training(raw, context, progress)


def train(model: Any, data: Any, annotations: Any = None, *, family: Optional[str] = None,
          preprocess: Any = None, labels: Any = None, threads: int = 0, seed: int = 0,
          progress: Progress = None, **settings: Any) -> Training:
    """A job that trains a network on labelled pictures: `for epoch in octet.train(...)`, or .run().
    `settings` are those of docs/training.md: epochs=10, batch=8, rate=0.01, preset=..., augment=..."""
    common = {"family": family, "preprocess": preprocess, "labels": labels, "threads": threads,
              "seed": seed}
    return _job(model, data, annotations, None, False, progress, common, {"train": settings})


QAT = ("fix_scales", "learn_zeros", "pact", "scale_rate", "freeze_scales", "bn_adapt")


def qat(model: Any, data: Any, annotations: Any = None, *, calibration: Any = None,
        target: str = "octet", ignored_scope: Any = None, quantize: Optional[dict[str, Any]] = None,
        family: Optional[str] = None, preprocess: Any = None, labels: Any = None, threads: int = 0,
        seed: int = 0, progress: Progress = None, **settings: Any) -> Training:
    """Quantization-aware training: the network is quantized first and then learns through the
    rounding. `quantize`: settings of octet.quantize(), as {"weight_bits": 4}; `settings`: those of
    train(), and fix_scales, learn_zeros, pact, scale_rate, freeze_scales, bn_adapt (docs/qat.md)."""
    common = {"family": family, "preprocess": preprocess, "labels": labels, "threads": threads,
              "seed": seed}
    others: dict[str, Any] = dict(quantize or {})
    if target != "octet":
        others["target"] = target
    if ignored_scope is not None:
        others["ignored_scope"] = scope_settings(ignored_scope)
    others["qat"] = {k: settings.pop(k) for k in QAT if k in settings} or None
    others["train"] = settings
    return _job(model, data, annotations, calibration, True, progress, common, others)
