# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: a function of (what, done, total), or tqdm's bars if that is there."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Union

Progress = Union[None, bool, Callable[[str, int, int], Any]]


class _Bars:
    """A bar for each kind of work, one after the other."""

    def __init__(self, tqdm: Any):
        self._tqdm = tqdm
        self._bar: Any = None
        self._what = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bar is None or what != self._what or total != self._bar.total:
            self.close()
            self._bar = self._tqdm(total=total, desc=what, leave=False)
            self._what = what
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _bars() -> Optional[_Bars]:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return _Bars(tqdm)


@contextmanager
def shown(context: Any, progress: Progress) -> Iterator[None]:
    """Work inside reports to `progress`: a function, True (tqdm), or None (nothing is shown)."""
    callback = _bars() if progress is True else progress or None
    before = context.progress
    context.progress = callback
    try:
        yield
    finally:
        context.progress = before
        if isinstance(callback, _Bars):
            callback.close()
