# SPDX-License-Identifier: Apache-2.0
"""Running networks."""
from __future__ import annotations

import random
from array import array
from typing import Any, Iterable, Mapping, Optional, Union

from . import _html, _octet
from ._network import Network, Value, load


def empty(shape: Iterable[int], dtype: str = "float32") -> Any:
    """A zeroed array (numpy's, if that is there) that sessions read in place: its memory is aligned
    to 64 bytes, which numpy's own seldom is."""
    tensor = _octet.Tensor(tuple(shape), str(dtype))
    try:
        import numpy
    except ImportError:
        return tensor
    return numpy.asarray(tensor)


class Session(_octet.Session):
    """A network compiled for this machine. Any number of threads may call run() at a time: each
    works with activations of its own, and the GIL is released meanwhile.

        s = octet.Session(net, threads=2)
        s.run({"images": array})          # a dict of arrays
        s(array)                          # the only output
        s.run(array, outputs={"y": out})  # results are written to `out`

    threads: of each run; 0: the physical cores. shapes: of inputs that the network leaves open, a
    dict or the only input's; other open dimensions are 1. simulate: quantized parts are computed
    in float, with rounding. plain: plain kernels only.
    """

    def __new__(cls, network: Any, threads: int = 0,
                shapes: Union[None, Iterable[int], Mapping[str, Iterable[int]]] = None, *,
                simulate: bool = False, plain: bool = False) -> "Session":
        net = network if isinstance(network, Network) else _network_of(network)
        if shapes is not None:
            net = net.copy()
            given = shapes if isinstance(shapes, Mapping) else {None: shapes}
            for name, shape in given.items():
                net.set_shape(shape, name)
        return super().__new__(cls, net._raw, threads, simulate, plain, 1)

    @property
    def inputs(self) -> list[Value]:
        """As compiled: all dimensions are numbers."""
        return [Value(*v) for v in self._inputs()]

    @property
    def outputs(self) -> list[Value]:
        """As compiled; a shape is None if it is known only after a run."""
        return [Value(*v) for v in self._outputs()]

    @property
    def activation_bytes(self) -> int:
        """Memory of one run."""
        return self._sizes()["activations"]

    @property
    def macs(self) -> int:
        return self._sizes()["macs"]

    def profile(self, inputs: Any = None, runs: int = 10) -> list[dict[str, Any]]:
        """Mean time of each step in ms, with its kernel: a list of dicts. Inputs are random if none
        are given."""
        if runs < 1:
            raise ValueError("a profile needs at least one run")
        inputs = self._random_inputs() if inputs is None else inputs
        self._measure(inputs, 1, False)
        _, sums = self._measure(inputs, runs, True)
        rows = self._steps()
        for row, ns in zip(rows, sums):
            row["ms"] = ns / runs / 1e6
        return rows

    def bench(self, inputs: Any = None, runs: int = 50, warmup: int = 5) -> dict[str, float]:
        """Times of `runs` runs in ms: median, p10, p90, min, mean."""
        if runs < 1:
            raise ValueError("a bench needs at least one run")
        inputs = self._random_inputs() if inputs is None else inputs
        if warmup:
            self._measure(inputs, warmup, False)
        return _figures(self._measure(inputs, runs, False)[0])

    def _random_inputs(self) -> dict[str, Any]:
        generator = random.Random(0)
        return {v.name: _random(v, generator) for v in self.inputs if v.shape is not None}

    def __repr__(self) -> str:
        return (f"<octet.Session {_html.values_text(self.inputs)} -> "
                f"{_html.values_text(self.outputs)}>")


def _figures(ns: list[int]) -> dict[str, float]:
    times = sorted(t / 1e6 for t in ns)
    n = len(times)
    return {"median_ms": times[n // 2], "p10_ms": times[n // 10], "p90_ms": times[n * 9 // 10],
            "min_ms": times[0], "mean_ms": sum(times) / n, "runs": n}


def bench_in_turns(sessions: list[Session], runs: int) -> list[dict[str, float]]:
    """Session.bench() of several, one run of each after the other: what disturbs one disturbs all."""
    inputs = [s._random_inputs() for s in sessions]
    times: list[list[int]] = [[] for _ in sessions]
    for _ in range(max(runs, 1) + 1):
        for s, x, ns in zip(sessions, inputs, times):
            ns += s._measure(x, 1, False)[0]
    return [_figures(ns[1:]) for ns in times]  # the first of each was to warm up


def _network_of(model: Any) -> Network:
    """A network, a result that has one, or what load() reads."""
    inner: Optional[Network] = getattr(model, "network", None)
    return inner if isinstance(inner, Network) else load(model)


def _random(value: Value, generator: random.Random) -> Any:
    tensor = _octet.Tensor(value.shape, value.dtype)
    n = 1
    for d in value.shape or ():
        n *= int(d)  # type: ignore[arg-type]
    kinds = {"float32": "f", "float64": "d"}
    if n and value.dtype in kinds:
        data = array(kinds[value.dtype], (generator.random() for _ in range(n)))
        memoryview(tensor).cast("B")[:] = memoryview(data).cast("B")
    elif n and value.dtype in ("uint8", "int8"):
        memoryview(tensor).cast("B")[:] = generator.randbytes(n)
    return tensor  # other types stay zero: their values may be indices
