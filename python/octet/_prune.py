# SPDX-License-Identifier: Apache-2.0
"""Pruning: channels that matter least are removed."""
from __future__ import annotations

from typing import Any, Optional

from . import _html, _octet
from ._data import opened
from ._network import Network
from ._progress import Progress, shown
from ._session import _network_of
from ._settings import settings_text


class Pruned:
    """The smaller network, and what became of each layer."""

    def __init__(self, network: Network, totals: dict[str, Any], layers: list[dict[str, Any]]):
        self.network = network
        self.totals = totals
        self.layers = layers

    def save(self, path: Any, **options: Any) -> None:
        self.network.save(path, **options)

    def to_bytes(self) -> bytes:
        return self.network.to_bytes()

    def __repr__(self) -> str:
        t = self.totals
        return (f"<octet.Pruned: {t['macs_left']} of {t['macs']} multiply-adds, "
                f"{t['channels_left']} of {t['channels']} channels>")

    def _repr_html_(self) -> str:
        rows = [(r["name"], r["op"], r["channels"], r["channels_left"], r["why"])
                for r in self.layers]
        return _html.heading(repr(self)[1:-1]) + _html.table(
            ("layer", "operator", "channels", "left", "why it kept them"), rows)


def prune(model: Any, data: Any = None, *, flops: float = 0, params: float = 0, channels: float = 0,
          time: float = 0, importance: str = "l2", global_: bool = False, most: float = 0.9,
          multiple: int = 8, keep: Optional[str] = None, only: Optional[str] = None,
          keep_first: bool = False, keep_strided: bool = False, mask: bool = False,
          family: Optional[str] = None, preprocess: Any = None, transform: Any = None,
          threads: int = 0, progress: Progress = None) -> Pruned:
    """Removes a share (0 to 1) of the multiply-adds, the weights, the channels of each layer, or the
    time of a run. With data (no labels needed), weights that are left are fitted so that layers give
    what they gave. docs/pruning.md has the rest."""
    net = _network_of(model)
    with shown(net._raw.context, progress):
        pictures = opened(data, net, 0, transform) if data is not None else None
        raw, totals, layers = _octet.prune(net._raw, flops, params, channels, time, importance,
                                           global_, most, multiple, keep, mask, only, keep_first,
                                           keep_strided, pictures,
                                           settings_text(family, preprocess, None, threads))
    return Pruned(Network(raw), totals, layers)
