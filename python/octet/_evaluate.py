# SPDX-License-Identifier: Apache-2.0
"""How good a network is, and what it finds on pictures."""
from __future__ import annotations

import os
from typing import Any, Iterable, Optional, Union

from . import _html, _octet
from ._data import Dataset, opened
from ._network import Network
from ._progress import Progress, shown
from ._session import _network_of
from ._settings import settings_text


class Evaluation(dict):
    """Figures by name (ap, ap50, ..., or top1 and, of more than five classes, top5), images,
    seconds, and `classes`: a list of dicts."""

    def _repr_html_(self) -> str:
        figures = [(k, v) for k, v in self.items() if k != "classes"]
        rows = [(c["name"], c["ap"], c["ap50"], c["labels"]) for c in self.get("classes", ())]
        return _html.table(("figure", "value"), figures) + (
            _html.table(("class", "AP", "AP50", "labels"), rows) if rows else "")


def evaluate(model: Any, data: Any, annotations: Any = None, *, family: Optional[str] = None,
             preprocess: Any = None, labels: Any = None, batch: int = 1, results: Any = None,
             threads: int = 0, progress: Progress = None) -> Evaluation:
    """Scores a network on labelled pictures: COCO's box metrics, or top-1 and top-5.

    data: a Dataset with annotations, or pictures, and their annotations. labels: a file with the
    names of the network's classes. results: a COCO results file to write.
    """
    net = _network_of(model)
    text = settings_text(family, preprocess, labels, threads)
    with shown(net._raw.context, progress):
        return Evaluation(_octet.evaluate(net._raw, opened(data, net, annotations=annotations), text,
                                          batch, results))


class Detector:
    """A detector or classifier, compiled once: for many pictures."""

    def __init__(self, model: Any, *, family: Optional[str] = None, preprocess: Any = None,
                 labels: Any = None, threads: int = 0):
        net = _network_of(model)
        if any(not isinstance(d, int) for v in net.inputs for d in v.shape or ()):
            net = net.copy()  # its input takes the size of the preprocessing
        self._raw = _octet.Detector(net._raw, settings_text(family, preprocess, labels, threads))
        facts = self._raw.facts()
        self.family: str = facts["family"]
        self.names: list[Optional[str]] = facts["names"]
        self.is_classifier: bool = facts["is_classifier"]
        self.preprocess: str = facts["preprocess"]

    def __call__(self, picture: Any, score: float = 0.25, iou: float = 0.65, *,
                 agnostic: bool = False, max_detections: int = 100, top: int = 5,
                 out: Any = None) -> list[dict[str, Any]]:
        """What is on a picture (a file, or an array of uint8, height x width x 3, RGB), best first:
        category, name, score, x, y, width, height. Classifiers give their `top` classes. out: draws
        the boxes into this file."""
        rows = self._raw.detect(picture, score, iou, agnostic, max_detections, out)
        if self.is_classifier:
            rows = sorted(rows, key=lambda r: -r["score"])[:top]
        return rows


def detect(model: Any, pictures: Any, score: float = 0.25, iou: float = 0.65,
           **options: Any) -> list:
    """What a network finds on a picture; of a list of pictures, a list of that. Detector has the
    options."""
    keys = ("family", "preprocess", "labels", "threads")
    detector = model if isinstance(model, Detector) else Detector(
        model, **{k: options.pop(k) for k in keys if k in options})
    if isinstance(pictures, (list, tuple)):
        return [detector(p, score, iou, **options) for p in pictures]
    return detector(pictures, score, iou, **options)
