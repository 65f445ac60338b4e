# SPDX-License-Identifier: Apache-2.0
"""Misuse does not crash: wrong arguments everywhere, mutated files, no leaks."""
import gc
import random
import resource

import numpy
import octet
import pytest
import tiny
from octet import _octet

JUNK = [None, 0, -1, 2**70, 1.5, float("nan"), "", "x", "\ud800", "a\0b", b"", b"x", (), [], {}, {1: 2}, object(),
        numpy.zeros(0), numpy.zeros((1,) * 12), numpy.array(["a"]), lambda *a: a, int, Exception()]
REFUSED = (octet.Error, TypeError, ValueError, OverflowError, MemoryError, OSError, AttributeError,
           KeyError, UnicodeError)


def junk(generator):
    return generator.choice(JUNK)


def test_functions_of_the_extension_survive_junk(net, items):
    generator = random.Random(7)
    context = _octet.Context()
    good = [context, net._raw, octet.Session(net), "{}", 1, 0, items[0],
            octet.Dataset(items)._open(net), octet.Tensor((2, 3), "int8")]
    targets = [getattr(_octet, n) for n in dir(_octet)
               if callable(getattr(_octet, n)) and not n.startswith("__")]
    for thing in good:
        if type(thing).__module__.startswith("octet"):
            targets += [getattr(thing, n) for n in dir(type(thing))
                        if not n.startswith("__") and callable(getattr(thing, n))]
    for f in targets:
        if getattr(f, "__name__", "") in ("save_onnx", "save_openvino", "report"):
            continue  # they would write files of odd names
        for _ in range(60):
            n = generator.randrange(11)
            args = [generator.choice(good) if generator.random() < 0.5 else junk(generator)
                    for _ in range(n)]
            try:
                f(*args)
            except REFUSED:
                pass


def test_the_package_survives_junk(net, items):
    generator = random.Random(8)
    for f in (octet.load, octet.Session, octet.quantize, octet.evaluate, octet.Detector,
              octet.analyze, octet.prune, octet.train, octet.qat, octet.empty, octet.Tensor):
        for _ in range(40):
            args = [net if generator.random() < 0.4 else junk(generator)
                    for _ in range(generator.randrange(1, 4))]
            try:
                f(*args)
            except REFUSED:
                pass


def test_broken_models_are_refused_or_run():
    generator = random.Random(9)
    whole = tiny.convolutions(n=1, channels=2, size=4)
    x = numpy.ones((1, 3, 4, 4), "f")
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(generator.randrange(1, 6)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        try:
            octet.Session(octet.load(bytes(data)), 1)(x)
        except REFUSED:
            pass


def test_freed_objects_leave_what_was_made_of_them(items):
    net = octet.load(tiny.convolutions())
    q = octet.quantize(net, items)
    raw, s, inner = q._raw, q.session(), q.network
    del net, q
    gc.collect()
    assert raw.summary()["layers_total"] == 3 and len(inner.nodes) > 3
    del raw
    y = s.run(items[0], copy=False)["y"]
    del s, inner
    gc.collect()
    assert numpy.isfinite(y).all()


@pytest.mark.parametrize("what", ["run", "in place", "errors", "load", "quantize"])
def test_calls_do_not_leak(what, items):
    net = octet.load(tiny.convolutions(size=4, n=1))
    s = octet.Session(net, 1)
    x = numpy.ones((1, 3, 4, 4), "f")
    data = tiny.convolutions(size=4, n=1)
    small = [i[..., :4, :4] for i in items]

    def wrong():
        for bad in (x.astype("d"), None, {"nobody": x}):
            try:
                s.run(bad)
            except (octet.Error, TypeError):
                pass

    calls, work = {
        "run": (10000, lambda: s.run({"images": x})),
        "in place": (10000, lambda: s.run(x, copy=False)),
        "errors": (3000, wrong),
        "load": (300, lambda: octet.Session(octet.load(data), 1)),
        "quantize": (12, lambda: octet.quantize(net, small)),
    }[what]
    for _ in range(max(8, calls // 10)):
        work()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(calls):
        work()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 12e6, f"{grown} bytes over {calls} calls"
