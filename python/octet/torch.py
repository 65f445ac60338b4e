# SPDX-License-Identifier: Apache-2.0
"""Networks of PyTorch: exported programs and modules. Needs torch, which octet itself does not."""
from __future__ import annotations

import os
import tempfile
from contextlib import nullcontext
from typing import Any, Optional

from . import _octet
from ._network import Network


def load_exported(program: Any, context: Optional["_octet.Context"] = None) -> Network:
    """A torch.export.ExportedProgram as a network: by way of torch.export.save()."""
    import torch

    with tempfile.TemporaryDirectory(prefix="octet-") as folder:
        path = os.path.join(folder, "model.pt2")
        torch.export.save(program, path)
        raw = _octet.load(context or _octet.Context(), path)
        return Network(_octet.load_bytes(raw.context, Network(raw).to_bytes()))


def load_module(module: Any, data: Any, threads: int = 0) -> Network:
    """A module, exported with the first item of the data as its example."""
    import torch

    example = _example(data)
    with torch.no_grad():
        program = torch.export.export(module, example)
    return load_exported(program, _octet.Context(threads))


def _example(data: Any) -> tuple:
    import torch

    source, transform = getattr(data, "source", data), getattr(data, "transform", None)
    if isinstance(source, (str, os.PathLike)):
        raise TypeError("a module of PyTorch is exported with the first item of the data: give "
                        "tensors, or export it with torch.export.export()")
    item = next(iter(source))
    if transform is not None:
        item = transform(item)
    parts = item if isinstance(item, (tuple, list)) else (item,)
    return tuple(_without_extra_axis(torch.as_tensor(p)) for p in parts)


def _without_extra_axis(tensor: Any) -> Any:
    """A loader of batches adds an axis of 1 to what is a batch already."""
    return tensor[0] if tensor.dim() == 5 and tensor.shape[0] == 1 else tensor


def disable_patching() -> Any:
    """For scripts written for nncf.torch: octet patches nothing."""
    return nullcontext()
