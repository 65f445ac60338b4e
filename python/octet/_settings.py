# SPDX-License-Identifier: Apache-2.0
"""Keywords as a recipe, which octet itself reads and checks (docs/recipe.md)."""
from __future__ import annotations

import json
import os
from typing import Any, Optional

from ._nncf import word


def _plain(value: Any) -> Any:
    value = word(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(v) for v in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return value.item()  # numpy's numbers
    return value


def settings_text(family: Optional[str] = None, preprocess: Any = None, labels: Any = None,
                  threads: int = 0, seed: int = 0, **others: Any) -> str:
    """Settings that are None are left out."""
    given: dict[str, Any] = {k: _plain(v) for k, v in others.items() if v is not None}
    if family is not None:
        given["family"] = family
    if preprocess is not None:
        given["preprocess"] = _plain(preprocess)
    if labels is not None:
        given.setdefault("data", {})["labels"] = _plain(labels)
    if threads:
        given["threads"] = threads
    if seed:
        given["seed"] = seed
    return json.dumps(given)
