# SPDX-License-Identifier: Apache-2.0
"""The words of nncf.quantize(), so that scripts written for it run with another import."""
from __future__ import annotations

import warnings
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Optional, Union


class ModelType(Enum):
    TRANSFORMER = "transformer"
    Transformer = "transformer"


class QuantizationPreset(Enum):
    PERFORMANCE = "performance"
    MIXED = "mixed"


class TargetDevice(Enum):
    ANY = "ANY"
    CPU = "CPU"
    GPU = "GPU"
    NPU = "NPU"
    CPU_SPR = "CPU_SPR"


class DropType(Enum):
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass
class Subgraph:
    """All nodes on paths from `inputs` to `outputs`, both included."""

    inputs: list[str]
    outputs: list[str]


@dataclass
class IgnoredScope:
    """Nodes that stay float: by name (also module paths), pattern, operator, subgraph. What matches
    nothing is an error, unless validate is False."""

    names: Union[str, list[str]] = field(default_factory=list)
    patterns: Union[str, list[str]] = field(default_factory=list)
    types: Union[str, list[str]] = field(default_factory=list)
    subgraphs: list[Subgraph] = field(default_factory=list)
    validate: bool = True


@dataclass
class AdvancedQuantizationParameters:
    """Those of NNCF's that have a meaning here. A dict of octet's own settings does as well."""

    disable_channel_alignment: bool = True
    disable_bias_correction: bool = False
    smooth_quant_alpha: Optional[float] = None


def word(value: Any) -> Any:
    """Enums of ours and of NNCF's as words."""
    return value.value if isinstance(value, Enum) else value


def _list(value: Any) -> list[Any]:
    return [value] if isinstance(value, str) else list(value)


def scope_settings(scope: Any) -> dict[str, Any]:
    """An IgnoredScope (ours, NNCF's, a dict or a list of names) as a recipe has it."""
    if isinstance(scope, (str, list, tuple, set)):
        scope = IgnoredScope(names=_list(scope))
    get = scope.get if isinstance(scope, dict) else lambda name, other: getattr(scope, name, other)
    out: dict[str, Any] = {}
    for name in ("names", "patterns", "types"):
        if get(name, None):
            out[name] = _list(get(name, None))
    subgraphs = get("subgraphs", None) or []
    if subgraphs:
        out["subgraphs"] = [g if isinstance(g, dict) else
                            {"inputs": list(g.inputs), "outputs": list(g.outputs)}
                            for g in subgraphs]
    if not get("validate", True):
        out["validate"] = False
    return out


def advanced_settings(parameters: Any) -> dict[str, Any]:
    """advanced_parameters as settings: a dict of octet's own, or an object with NNCF's names. Those
    without a meaning here are warned of where they are not at their default."""
    if parameters is None:
        return {}
    if isinstance(parameters, dict):
        return dict(parameters)
    out: dict[str, Any] = {}
    if getattr(parameters, "disable_bias_correction", False):
        out["bias_correction"] = "none"
    if getattr(parameters, "disable_channel_alignment", True) is False:
        out["align_channels"] = True
    alpha = getattr(parameters, "smooth_quant_alpha", None)
    if alpha is not None and alpha >= 0:
        out["smooth_quant"] = alpha
    _warn_of_others(parameters)
    return out


def _warn_of_others(parameters: Any) -> None:
    known = {f.name for f in fields(AdvancedQuantizationParameters)}
    try:
        others = {f.name: getattr(parameters, f.name) for f in fields(parameters)
                  if f.name not in known}
        plain = type(parameters)()
    except TypeError:
        return
    changed = [name for name, value in others.items() if value != getattr(plain, name, value)]
    if changed:
        warnings.warn(f"advanced_parameters: {', '.join(changed)} has no effect in octet",
                      stacklevel=4)
