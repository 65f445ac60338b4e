# SPDX-License-Identifier: Apache-2.0
"""The main job: a float network and some data in, an INT8 network out."""
from __future__ import annotations

import os
from typing import Any, Callable, Iterable, Optional, Union

from . import _html, _octet
from ._data import opened
from ._network import Network, load
from ._nncf import advanced_settings, scope_settings, word
from ._progress import Progress, shown
from ._session import Session
from ._settings import settings_text

SUBSET_SIZE = 300  # as octet quantize, and nncf.quantize


class Quantized:
    """A quantized network, and how it came about."""

    def __init__(self, raw: "_octet.Quantized", exact: Network):
        self._raw = raw
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
                _html.line(s["tail"] or "") +
                _html.table(("layer", "operator", "computed in", "noise"), rows, 20))


def quantize(model: Any, calibration_dataset: Any = None, *, dataset: Any = None,
             target: str = "octet", preset: Any = None, model_type: Any = None,
             target_device: Any = None, subset_size: int = SUBSET_SIZE,
             fast_bias_correction: Optional[bool] = None, ignored_scope: Any = None,
             only_scope: Any = None, advanced_parameters: Any = None,
             transform: Optional[Callable[[Any], Any]] = None, outputs: Optional[Iterable[str]] = None,
             family: Optional[str] = None, preprocess: Any = None, threads: int = 0, seed: int = 0,
             progress: Progress = None, **settings: Any) -> Quantized:
    """Quantizes a network.

    model: a Network, or what octet.load() reads. calibration_dataset: a Dataset, a folder of
    pictures, or anything Dataset takes; `transform` is applied to its items. target: the runtime the
    result is for, one of octet.choices("targets"). The other names are those of nncf.quantize();
    `settings` are those of a recipe (octet.settings() lists them), as ranges={"activations": "kl"},
    weight_bits=4, adaround=True. progress: a function of (what, done, total), or True for tqdm.

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
    text = settings_text(family, preprocess, None, threads, seed, preset=_lower(preset),
                         model_type=_lower(model_type), target_device=word(target_device),
                         fast_bias_correction=fast_bias_correction, **given)
    with shown(net._raw.context, progress):
        raw = _octet.quantize(net._raw, opened(data, net, subset_size, transform), text, net._source)
    return Quantized(raw, net)


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
