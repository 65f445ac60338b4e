# SPDX-License-Identifier: Apache-2.0
"""The main job: a float network and some data in, an INT8 network out."""
from __future__ import annotations

import os
from typing import Any, Callable, Iterable, Optional, Union

from . import _html, _octet
from ._data import opened
from ._control import promise_settings, promises, search
from ._network import Network, load
from ._nncf import DropType, advanced_settings, scope_settings, word
from ._progress import Progress, shown
from ._session import Session
from ._settings import settings_text

SUBSET_SIZE = 300  # as octet quantize, and nncf.quantize


class Quantized:
    """A quantized network, and how it came about."""

    def __init__(self, raw: "_octet.Quantized", exact: Network,
                 promise: Optional[dict[str, Any]] = None):
        self._raw = raw
        self.promise = promise
        """What was promised (max_drop and its like), or None: holds, float_score, first_score, score,
        need, restored (names of layers that are float for it), steps (networks that were scored)."""
        self.exact = exact
        """The float network."""
        self.network = Network(raw.graph())
        """The quantized one, with QuantizeLinear and DequantizeLinear nodes."""

    @property
    def summary(self) -> dict[str, Any]:
        return self._raw.summary()

    @property
    def layers(self) -> list[dict[str, Any]]:
        """Layers with weights: name, op, reason (why it is float, or None), noise."""
        return self._raw.layers()

    @property
    def inputs(self) -> list:
        return self.network.inputs

    @property
    def outputs(self) -> list:
        return self.network.outputs

    def save(self, path: Union[str, os.PathLike], **options: Any) -> None:
        """As Network.save()."""
        self.network.save(path, **options)

    def to_bytes(self) -> bytes:
        return self.network.to_bytes()

    SerializeToString = to_bytes

    def copy(self) -> Network:
        return self.network.copy()

    def save_qmap(self, path: Union[str, os.PathLike]) -> None:
        """Writes where integers stand and their scales, as octet's own JSON."""
        self._raw.save_qmap(path)

    def save_quant_cfg(self, path: Union[str, os.PathLike]) -> None:
        """Writes PPQ's quant_cfg.json."""
        self._raw.save_ppq(path)

    def session(self, threads: int = 0) -> Session:
        return Session(self.network, threads)

    def __call__(self, *inputs: Any) -> Any:
        """Runs it, with a session that is made once."""
        if not hasattr(self, "_session"):
            self._session = Session(self.network)
        return self._session(*inputs)

    def __repr__(self) -> str:
        s = self.summary
        return (f"<octet.Quantized: {s['layers_quantized']} of {s['layers_total']} layers, "
                f"{100 * s['macs_quantized_share']:.1f} % of the multiply-adds>")

    def _repr_html_(self) -> str:
        s = self.summary
        layers = sorted(self.layers, key=lambda r: (r["reason"] is None, -r["noise"]))
        rows = [(r["name"], r["op"], r["reason"] or "INT8",
                 r["noise"] if r["noise"] >= 0 else None) for r in layers]
        return (_html.heading(f"{s['layers_quantized']} of {s['layers_total']} layers are INT8") +
                _html.line(f"{100 * s['macs_quantized_share']:.1f} % of the multiply-adds, "
                           f"{s['images']} items, {s['seconds']:.1f} s") +
                _html.line(s["tail"] or "") + self._promise_html() +
                _html.table(("layer", "operator", "computed in", "noise"), rows, 20))

    def _promise_html(self) -> str:
        p = self.promise
        if p is None:
            return ""
        rows = [(r["move"], r["layer"], r["restored"], r["score"], r["holds"]) for r in p["steps"]]
        return (_html.line(f"promise {'kept' if p['holds'] else 'NOT kept'}: {p['score']:.4g}, "
                           f"{p['need']:.4g} was asked for; {len(p['restored'])} layers are float "
                           f"for it ({p['first_score']:.4g} without)") +
                _html.table(("step", "layer", "float for it", "score", "kept"), rows, 20))


def quantize(model: Any, calibration_dataset: Any = None, *, dataset: Any = None,
             target: str = "octet", preset: Any = None, model_type: Any = None,
             target_device: Any = None, subset_size: int = SUBSET_SIZE,
             fast_bias_correction: Optional[bool] = None, ignored_scope: Any = None,
             only_scope: Any = None, advanced_parameters: Any = None,
             max_drop: Optional[float] = None, drop_type: Any = None,
             measure: Optional[Callable[[Network], float]] = None, truth: Any = None,
             annotations: Any = None,
             transform: Optional[Callable[[Any], Any]] = None, outputs: Optional[Iterable[str]] = None,
             family: Optional[str] = None, preprocess: Any = None, threads: int = 0, seed: int = 0,
             progress: Progress = None, **settings: Any) -> Quantized:
    """Quantizes a network.

    model: a Network, or what octet.load() reads. calibration_dataset: a Dataset, a folder of
    pictures, or anything Dataset takes; `transform` is applied to its items. target: the runtime the
    result is for, one of octet.choices("targets"). The other names are those of nncf.quantize();
    `settings` are those of a recipe (octet.settings() lists them), as ranges={"activations": "kl"},
    weight_bits=4, adaround=True. progress: a function of (what, done, total), or True for tqdm.

    max_drop: layers are restored to float until the accuracy is at most that much below the float
    network's (drop_type="relative": that share of it), measured on `truth` (a Dataset with
    annotations, or pictures with `annotations`), or by `measure`, a function of a network that
    returns a number, where more is better. Without labels: min_repeat=0.98, max_noise=0.01. What
    came of it is in the result's `promise`; one that cannot be kept is warned of.

    The model is not changed.
    """
    data = calibration_dataset if calibration_dataset is not None else dataset
    if data is None:
        raise TypeError("quantize() needs data to calibrate on: a folder of pictures, or an iterable")
    net = _exact_of(model, data, threads)
    if outputs is not None:
        net = net.copy().keep_outputs(outputs)
    given = {**advanced_settings(advanced_parameters), **settings}
    if subset_size != SUBSET_SIZE:
        given.setdefault("data", {})["subset_size"] = subset_size
    if ignored_scope is not None:
        given["ignored_scope"] = scope_settings(ignored_scope)
    if only_scope is not None:
        given["only_scope"] = scope_settings(only_scope)
    if target != "octet":
        given["target"] = target
    promise_settings(given, max_drop, drop_type, measure, truth, annotations)
    text = settings_text(family, preprocess, None, threads, seed, preset=_lower(preset),
                         model_type=_lower(model_type), target_device=word(target_device),
                         fast_bias_correction=fast_bias_correction, **given)
    with shown(net._raw.context, progress):
        images = opened(data, net, subset_size, transform)
        if not promises(given):
            return Quantized(_octet.quantize(net._raw, images, text, net._source), net)
        raw, promise = search(net, images, text, measure, data if truth is None else truth,
                              annotations, threads)
    return Quantized(raw, net, promise)


def quantize_with_accuracy_control(model: Any, calibration_dataset: Any, validation_dataset: Any,
                                   validation_fn: Callable[[Session, Iterable[Any]], Any],
                                   max_drop: float = 0.01, drop_type: Any = DropType.ABSOLUTE,
                                   advanced_quantization_parameters: Any = None,
                                   **options: Any) -> Quantized:
    """nncf's function of this name: quantize() with `max_drop`. validation_fn gets a session, which
    is called with arrays, and the items of validation_dataset; it returns the score (more is
    better), or a tuple that begins with it."""
    def measure(net: Network) -> float:
        score = validation_fn(Session(net), getattr(validation_dataset, "source", validation_dataset))
        return score[0] if isinstance(score, tuple) else score

    return quantize(model, calibration_dataset, max_drop=max_drop, drop_type=drop_type,
                    measure=measure, advanced_parameters=advanced_quantization_parameters, **options)


def _lower(value: Any) -> Any:
    value = word(value)
    return value.lower() if isinstance(value, str) else value


def _exact_of(model: Any, data: Any, threads: int) -> Network:
    """The float network; modules of PyTorch are exported with the first item of the data."""
    if isinstance(model, Quantized):
        return model.exact
    if hasattr(model, "state_dict") and hasattr(model, "forward"):
        from .torch import load_module

        return load_module(model, data, threads)
    return load(model, threads=threads)
