# SPDX-License-Identifier: Apache-2.0
"""Where a quantized network loses accuracy, what to do about it, and the report."""
from __future__ import annotations

import os
from typing import Any, Optional

from . import _html, _octet
from ._data import opened
from ._network import Network
from ._progress import Progress, shown
from ._quantize import Quantized
from ._session import Session, _network_of, bench_in_turns
from ._settings import settings_text


class Analysis:
    """Rows as lists of dicts, ready for pandas: layers, points, outputs, advice (best first)."""

    def __init__(self, rows: dict[str, Any]):
        self.layers: list[dict[str, Any]] = [_flat(r) for r in rows["layers"]]
        self.points: list[dict[str, Any]] = rows["points"]
        self.outputs: list[dict[str, Any]] = rows["outputs"]
        self.advice: list[dict[str, Any]] = rows["advice"]
        self.images: int = rows["images"]

    def __repr__(self) -> str:
        return f"<octet.Analysis: {len(self.layers)} layers on {self.images} pictures>"

    def _repr_html_(self) -> str:
        worst = sorted(self.layers, key=lambda r: -(r["alone_noise"] or 0))
        rows = [(r["name"], r["op"], r["reason"] or "INT8", r["alone_noise"], r["all_noise"])
                for r in worst]
        return (_html.heading(f"{len(self.layers)} layers on {self.images} pictures") +
                _html.table(("output", "noise", "cosine"),
                            [(o["name"], o["noise"], o["cosine"]) for o in self.outputs]) +
                _html.table(("advice", "option"), [(a["text"], a["option"]) for a in self.advice]) +
                _html.table(("layer", "operator", "computed in", "error alone", "error with all"),
                            rows, 20))


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Errors as columns of their own: alone_noise, all_cosine, ..."""
    out = {k: v for k, v in row.items() if k not in ("alone", "all")}
    for kind in ("alone", "all"):
        for name in ("noise", "cosine", "mse", "kl"):
            out[f"{kind}_{name}"] = row[kind][name] if row[kind] else None
    return out


def _pair(exact: Any, quantized: Any) -> tuple[Network, Network]:
    """Both networks in the context of the first; a Quantized brings its float network."""
    if quantized is None:
        if not isinstance(exact, Quantized):
            raise TypeError("the float network and the quantized one are needed, or what "
                            "octet.quantize() returned")
        exact, quantized = exact.exact, exact
    float_net = _network_of(exact)
    return float_net, _network_of(quantized)._in(float_net._raw.context)


def analyze(exact: Any, quantized: Any = None, data: Any = None, *, images: int = 16,
            layerwise: bool = True, graphwise: bool = True, statistics: bool = True,
            family: Optional[str] = None, preprocess: Any = None, transform: Any = None,
            threads: int = 0, progress: Progress = None) -> Analysis:
    """Compares a float network with a quantized form of it (by whomever), layer by layer, on the
    first `images` items of the data. Also as analyze(result_of_quantize, data=...)."""
    if data is None:
        raise TypeError("analyze() needs data to run both networks on")
    net, other = _pair(exact, quantized)
    with shown(net._raw.context, progress):
        return Analysis(_octet.analyze(net._raw, other._raw,
                                       opened(data, net, images, transform),
                                       settings_text(family, preprocess, None, threads), images,
                                       layerwise, graphwise, statistics))


class Report:
    """A page that was written."""

    def __init__(self, path: str):
        self.path = path

    def __repr__(self) -> str:
        return f"<octet.Report {self.path}>"

    def _repr_html_(self) -> str:
        from html import escape

        with open(self.path, encoding="utf-8") as f:
            page = escape(f.read(), quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="800"></iframe>'


def report(exact: Any, quantized: Any = None, data: Any = None, folder: Any = "report", *,
           truth: Any = None, annotations: Any = None, title: Optional[str] = None,
           family: Optional[str] = None, preprocess: Any = None, labels: Any = None,
           transform: Any = None, runs: int = 30, threads: int = 0,
           progress: Progress = None) -> Report:
    """Writes FOLDER/index.html: layers, errors, histograms, the graph, times, and with `truth` (a
    Dataset with annotations, or pictures with `annotations`) the accuracy of both networks."""
    if data is None:
        raise TypeError("report() needs data to run both networks on")
    result = quantized if isinstance(quantized, Quantized) else exact
    net, other = _pair(exact, quantized)
    context = net._raw.context
    times = bench_in_turns([Session(n, threads) for n in (net, other)], runs)
    text = settings_text(family, preprocess, labels, threads)
    with shown(context, progress):
        _octet.report(net._raw, other._raw, getattr(result, "_raw", None) if
                      isinstance(result, Quantized) else None, opened(data, net, 0, transform),
                      opened(truth, net, annotations=annotations) if truth is not None else None,
                      folder, text, title or net.name or "network", net._source, other._source,
                      len(net.to_bytes()), len(other.to_bytes()), times[0]["median_ms"],
                      times[1]["median_ms"], runs, times[0]["p10_ms"], times[0]["p90_ms"],
                      times[1]["p10_ms"], times[1]["p90_ms"], "octet.report(...)")
    return Report(os.path.join(os.fspath(folder), "index.html"))
