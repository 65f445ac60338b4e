# SPDX-License-Identifier: Apache-2.0
"""Networks: from files and memory, and back."""
from __future__ import annotations

import os
import tempfile
from typing import Any, Iterable, NamedTuple, Optional, Tuple, Union

from . import _html, _octet


class Value(NamedTuple):
    """An input or output of a network."""

    name: str
    dtype: str
    shape: Optional[Tuple[Union[int, str, None], ...]]
    """Dimensions: a number, a name, or None if nothing is known of it; None: not even their number."""


class Network:
    """A network. `octet.load()` makes one. Any thread may use it; two at a time wait for each other."""

    def __init__(self, raw: "_octet.Network", source: Optional[str] = None):
        self._raw = raw
        self._source = source  # the file it came from, which goes into quantized ones

    @property
    def inputs(self) -> list[Value]:
        return [Value(*v) for v in self._raw.inputs()]

    @property
    def outputs(self) -> list[Value]:
        return [Value(*v) for v in self._raw.outputs()]

    @property
    def nodes(self) -> list[dict[str, Any]]:
        """One dict for each node: name, op, domain, inputs, outputs, params, macs."""
        return self._raw.nodes()

    @property
    def name(self) -> str:
        return self._raw.facts()["name"]

    @property
    def opset(self) -> int:
        return self._raw.facts()["opset"]

    @property
    def producer(self) -> str:
        return self._raw.facts()["producer"]

    @property
    def metadata(self) -> dict[str, str]:
        return self._raw.metadata()

    def set_metadata(self, key: str, value: Optional[str]) -> None:
        """Sets what is written under a key; None removes it."""
        self._raw.set_metadata(key, value)

    def simplify(self, only: Optional[Iterable[str]] = None,
                 skip: Optional[Iterable[str]] = None) -> "Network":
        """Folds and removes what is not needed, in place, and returns the network.
        `octet.choices("passes")` has the names."""
        self._raw.simplify(_words(only), _words(skip))
        return self

    def set_shape(self, shape: Iterable[int], name: Optional[str] = None) -> "Network":
        """Fixes the shape of an input: the only one, or that of this name."""
        self._raw.set_shape(name if name is not None else _only_input(self), tuple(shape))
        return self

    def keep_outputs(self, names: Union[str, Iterable[str]]) -> "Network":
        """Keeps only these outputs, and drops what only the others need."""
        self._raw.keep_outputs(names if isinstance(names, str) else ",".join(names))
        return self

    def save(self, path: Union[str, os.PathLike], *, external_data: bool = False, opset: int = 0,
             half: bool = False) -> None:
        """Writes an ONNX file; a name that ends with .xml: OpenVINO's IR (`half`: float16 constants)."""
        if os.fspath(path).endswith(".xml"):
            self._raw.save_openvino(path, half)
        else:
            self._raw.save_onnx(path, external_data, opset)

    def to_bytes(self) -> bytes:
        """The ONNX file as bytes."""
        with tempfile.TemporaryDirectory(prefix="octet-") as folder:
            path = os.path.join(folder, "model.onnx")
            self._raw.save_onnx(path, False, 0)
            if len(os.listdir(folder)) > 1:
                raise ValueError("the network is larger than 2 GiB: save() writes it in two files")
            with open(path, "rb") as f:
                return f.read()

    SerializeToString = to_bytes  # as onnx.ModelProto

    def copy(self) -> "Network":
        """Another network with the same content, which may be changed on its own."""
        return Network(_octet.load_bytes(_octet.Context(), self.to_bytes()), self._source)

    def _in(self, context: "_octet.Context") -> "Network":
        """This network in another context: itself, or a copy."""
        if self._raw.context is context:
            return self
        return Network(_octet.load_bytes(context, self.to_bytes()), self._source)

    def __repr__(self) -> str:
        facts = self._raw.facts()
        return (f"<octet.Network {facts['name']!r}: {facts['n_nodes']} nodes, "
                f"{_html.values_text(self.inputs)} -> {_html.values_text(self.outputs)}>")

    def _repr_html_(self) -> str:
        facts = self._raw.facts()
        rows = [("input", *v) for v in self.inputs] + [("output", *v) for v in self.outputs]
        return (_html.heading(facts["name"] or "network") +
                _html.line(f"{facts['n_nodes']} nodes, opset {facts['opset']}, {facts['producer']}") +
                _html.line(facts["quantized"] or "") +
                _html.table(("", "name", "type", "shape"), rows))


def _words(names: Optional[Iterable[str]]) -> Optional[str]:
    return names if names is None or isinstance(names, str) else ",".join(names)


def _only_input(net: Network) -> str:
    names = [v.name for v in net.inputs]
    if len(names) != 1:
        raise ValueError(f"the network has {len(names)} inputs: say which ({', '.join(names)})")
    return names[0]


def load(model: Any, *, threads: int = 0) -> Network:
    """Reads a network.

    `model`: a file (ONNX, torch.export's .pt2, OpenVINO's .xml, a checkpoint of octet.train), the
    bytes of an ONNX file, an onnx.ModelProto, a torch.export.ExportedProgram, or a Network, which
    is returned. `threads` that work on it; 0: the physical cores.
    """
    if isinstance(model, Network):
        return model
    context = _octet.Context(threads)
    if isinstance(model, (str, os.PathLike)):
        return Network(_octet.load(context, model), os.fspath(model))
    if isinstance(model, (bytes, bytearray, memoryview)):
        return Network(_octet.load_bytes(context, bytes(model)))
    if hasattr(model, "SerializeToString"):
        return Network(_octet.load_bytes(context, model.SerializeToString()))
    if type(model).__module__.partition(".")[0] == "torch" or hasattr(model, "graph_module"):
        from .torch import load_exported

        return load_exported(model, context)
    raise TypeError(f"octet.load() reads files, bytes and ONNX models, not {type(model).__name__}")
