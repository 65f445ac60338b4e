# SPDX-License-Identifier: Apache-2.0
"""Data: folders and files that octet reads itself, and anything that can be iterated over."""
from __future__ import annotations

import os
from itertools import islice
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from . import _octet
from ._network import Network, Value

Path = Union[str, os.PathLike]


class Dataset:
    """What to calibrate, evaluate or train with.

    data_source: a folder, picture, video, list of names, data.yaml, .npz or pattern ("a/*.jpg"), or
    several of them; or anything that can be iterated over: arrays, tuples of arrays in the order of
    the network's inputs, dicts of arrays by name, a torch DataLoader. transform_func (also as
    `transform`) is applied to each item, as nncf.Dataset does. Items of several pictures are taken
    apart where the network takes one at a time.

    annotations (of files): COCO's JSON, a folder of VOC or YOLO files, a list 'name class'. limit:
    the first so many only. random, seed: subsets are picked at random. skip_bad: broken pictures are
    left out. every: of a video, every n-th frame.
    """

    def __init__(self, data_source: Any, transform_func: Optional[Callable[[Any], Any]] = None, *,
                 transform: Optional[Callable[[Any], Any]] = None,
                 annotations: Optional[Path] = None, limit: int = 0, random: bool = False,
                 seed: int = 0, skip_bad: bool = False, every: int = 0):
        self.source = data_source
        self.transform = transform_func or transform
        self.annotations = annotations
        self._options = (random, seed, skip_bad, every)
        self.limit = limit

    def _open(self, net: Network, subset_size: int = 0) -> "_octet.Dataset":
        context = net._raw.context
        paths = _paths_of(self.source)
        if paths is not None and self.transform is None:
            random, seed, skip_bad, every = self._options
            return _octet.open_files(context, paths, self.annotations, self.limit, subset_size,
                                     random, seed, skip_bad, every)
        if self.annotations is not None:
            raise TypeError("annotations go with files; an iterable brings its own labels")
        limits = [n for n in (self.limit, subset_size) if n]
        source = _Source(self.source, self.transform, net.inputs, min(limits, default=0))
        return _octet.open_source(context, source, [v.name for v in net.inputs], source.size())


def opened(data: Any, net: Network, subset_size: int = 0, transform: Any = None,
           annotations: Any = None) -> "_octet.Dataset":
    """Data in any form, opened for a network."""
    if not isinstance(data, Dataset):
        data = Dataset(data, transform, annotations=annotations)
    return data._open(net, subset_size)


def _paths_of(source: Any) -> Optional[list[Path]]:
    if isinstance(source, (str, os.PathLike)):
        return [source]
    if isinstance(source, (list, tuple)) and source and all(
            isinstance(s, (str, os.PathLike)) for s in source):
        return list(source)
    return None


class _Source:
    """Items by number, out of something that is only iterated over. octet may ask for an item
    again, and must then get the same: what cannot be repeated is kept."""

    def __init__(self, data: Any, transform: Any, inputs: Sequence[Value], limit: int):
        self._data = data
        self._transform = transform
        self._inputs = inputs
        self._limit = limit
        self._pieces: Optional[Iterator[tuple]] = None
        self._at = 0
        self._kept: Optional[list[tuple]] = None
        if not _is_repeatable(data):
            self._kept = list(islice(self._all(), limit or None))

    def size(self) -> int:
        """The number of items; -1: not known before they are counted."""
        if self._kept is not None:
            if not self._kept:
                raise ValueError("there is nothing in the dataset")
            return len(self._kept)
        try:
            n = len(self._data)
        except TypeError:
            return -1
        if n == 0:
            raise ValueError("there is nothing in the dataset")
        first = next(iter(self._items()))
        if len(_split(first, self._inputs)) != 1:
            return -1
        return min(n, self._limit) if self._limit else n

    def __call__(self, index: int) -> Optional[tuple]:
        if self._limit and index >= self._limit:
            return None
        if self._kept is not None:
            return self._kept[index] if index < len(self._kept) else None
        if self._pieces is None or index < self._at:
            self._pieces = self._all()
            self._at = 0
        piece = None
        while self._at <= index:
            piece = next(self._pieces, None)
            if piece is None:
                self._pieces = None
                return None
            self._at += 1
        return piece

    def _items(self) -> Iterator[tuple]:
        for item in self._data:
            if self._transform is not None:
                item = self._transform(item)
            yield _fit(item, self._inputs)

    def _all(self) -> Iterator[tuple]:
        for item in self._items():
            yield from _split(item, self._inputs)


def _is_repeatable(data: Any) -> bool:
    if hasattr(data, "__next__") or not (hasattr(data, "__iter__") or hasattr(data, "__getitem__")):
        return False
    sampler = type(getattr(data, "sampler", None)).__name__
    return sampler != "RandomSampler"  # a shuffled DataLoader has another order each time


def _fit(item: Any, inputs: Sequence[Value]) -> tuple:
    """An item as one array for each input of the network."""
    names = [v.name for v in inputs]
    if isinstance(item, dict):
        missing = [n for n in names if n not in item]
        if missing:
            raise ValueError(f"an item of the dataset has nothing for the input {missing[0]!r}; it "
                             f"has {', '.join(map(repr, item))}")
        parts = [item[n] for n in names]
    elif isinstance(item, (tuple, list)):
        if len(item) != len(names):
            raise ValueError(f"an item of the dataset has {len(item)} parts, the network "
                             f"{len(names)} inputs ({', '.join(names)}): a transform has to return "
                             "what the network takes")
        parts = list(item)
    elif len(names) == 1:
        parts = [item]
    else:
        raise ValueError(f"the network has {len(names)} inputs: an item of the dataset must be a "
                         f"dict or a tuple ({', '.join(names)})")
    return tuple(_array(p, v) for p, v in zip(parts, inputs))


def _array(part: Any, value: Value) -> Any:
    """An array of the network's rank: loaders add an axis of 1 for the batch, or leave it out."""
    if hasattr(part, "detach"):
        part = part.detach().cpu()
    if not hasattr(part, "shape"):
        try:
            import numpy

            part = numpy.asarray(part)
        except ImportError:
            raise TypeError(f"{type(part).__name__} is not an array") from None
    if value.shape is None:
        return part
    extra = len(part.shape) - len(value.shape)
    if extra == 1 and part.shape[0] == 1:
        return part[0]
    return part[None] if extra == -1 else part


def _split(item: tuple, inputs: Sequence[Value]) -> list[tuple]:
    """One item for each picture, where the network takes one at a time or any number."""
    counts = set()
    for part, value in zip(item, inputs):
        if not value.shape or not len(part.shape):
            return [item]
        if isinstance(value.shape[0], int) and value.shape[0] != 1:
            return [item]
        counts.add(int(part.shape[0]))
    if len(counts) != 1 or counts <= {0, 1}:
        return [item]
    return [tuple(part[i:i + 1] for part in item) for i in range(counts.pop())]
