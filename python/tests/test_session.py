# SPDX-License-Identifier: Apache-2.0
"""Running: arrays in and out, threads, measuring."""
import gc
import threading

import numpy
import octet
import pytest
import tiny


def address(a):
    return a.__array_interface__["data"][0]


def test_runs_dicts_tuples_and_arrays():
    s = octet.Session(octet.load(tiny.add()))
    a, b = numpy.full((2, 3), 2, "f"), numpy.full((2, 3), 5, "f")
    for out in (s.run({"b": b, "a": a}), s.run((a, b)), s.run([a, b])):
        assert (out["sum"] == 7).all() and (out["product"] == 10).all()
    both = s(a, b)
    assert isinstance(both, tuple) and (both[1] == 10).all()
    one = octet.Session(tiny.identity())
    assert (one(a) == a).all() and (one.run(a)["y"] == a).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint8", "int32",
                                   "int64", "bool"])
def test_all_types_go_in_and_out(dtype):
    x = (numpy.arange(6).reshape(2, 3) % 2).astype(dtype)
    y = octet.Session(tiny.identity(dtype=dtype))(x)
    assert y.dtype == x.dtype and (x == y).all()


def test_layouts_that_are_not_dense_are_copied():
    s = octet.Session(tiny.identity())
    x = numpy.arange(6, dtype="f").reshape(2, 3)
    wide = numpy.arange(24, dtype="f").reshape(4, 6)[::2, ::2]
    assert (s(numpy.asfortranarray(x)) == x).all()
    assert (s(wide) == wide).all()
    x.setflags(write=False)
    assert (s(x) == x).all()


def test_outputs_are_written_where_the_caller_says():
    s = octet.Session(tiny.add())
    a = numpy.ones((2, 3), "f")
    out = numpy.zeros((2, 3), "f")
    got = s.run({"a": a, "b": a}, outputs={"sum": out})
    assert got["sum"] is out and (out == 2).all()
    for wrong in (numpy.zeros((3, 2), "f"), numpy.zeros((2, 3)), numpy.zeros((2, 6), "f")[:, ::2], 7):
        with pytest.raises((octet.Error, TypeError)):
            s.run({"a": a, "b": a}, outputs={"sum": wrong})
    out.setflags(write=False)
    with pytest.raises(octet.Error, match="writable"):
        s.run({"a": a, "b": a}, outputs={"sum": out})
    with pytest.raises(octet.Error, match="summe"):
        s.run({"a": a, "b": a}, outputs={"summe": out})


def test_results_in_place_show_the_memory_of_the_run():
    s = octet.Session(tiny.add())
    a = octet.empty((2, 3))
    a[:] = 3
    first = s.run((a, a), copy=False)["product"]
    base = first.base.obj if isinstance(first.base, memoryview) else first.base
    assert base.address == address(first)
    second = s.run((a + 1, a), copy=False)["product"]  # another run: the first result is in use
    assert (first == 9).all() and (second == 12).all() and address(first) != address(second)
    kept = address(first)
    del first, base
    assert address(s.run((a, a), copy=False)["product"]) == kept  # which gave its run back


def test_inputs_and_outputs_are_not_copied():
    """An identity network hands on its input: what comes out has the address of what went in."""
    a = octet.empty((2, 3))
    s = octet.Session(tiny.identity())
    out = s.run(a, copy=False)["y"]
    assert address(a) % 64 == 0 and address(out) == address(a)
    a[:] = 5
    assert (out == 5).all()
    del a, s
    gc.collect()
    octet.empty((2, 3))[:] = 7  # would take the place of memory that was freed
    assert (out == 5).all()


def test_memory_goes_through_without_a_copy():
    t = octet.Tensor((4, 5), "int16")
    a = numpy.asarray(t)
    b = numpy.from_dlpack(t)
    assert address(a) == address(b) == t.address and a.dtype == b.dtype == numpy.int16
    a[2, 3] = 9
    assert b[2, 3] == 9 and memoryview(t)[2, 3] == 9
    del t
    assert a[2, 3] == 9


class OnlyDlpack:
    """As a torch tensor: no buffer protocol."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_comes_in():
    s = octet.Session(tiny.identity())
    x = numpy.arange(12, dtype="f").reshape(2, 6)
    assert (s(OnlyDlpack(x[:, :3])) == x[:, :3]).all()
    assert (s(OnlyDlpack(x[:, ::2])) == x[:, ::2]).all()
    with pytest.raises(octet.Error, match="float64"):
        s(OnlyDlpack(x[:, :3].astype("d")))


def test_shapes_known_only_after_a_run():
    s = octet.Session(tiny.nonzero())
    assert s(numpy.array([0, 1, 0, 2], "f")).tolist() == [[1, 3]]
    assert s(numpy.array([1, 1, 0, 2], "f")).tolist() == [[0, 1, 3]]
    assert s.run(numpy.zeros(4, "f"), copy=False)["where"].shape == (1, 0)


def test_open_shapes_are_fixed_by_the_session():
    net = octet.load(tiny.identity(("batch", 4)))
    assert octet.Session(net, shapes=(3, 4)).inputs[0].shape == (3, 4)
    assert octet.Session(net, shapes={"x": (5, 4)})(numpy.ones((5, 4), "f")).shape == (5, 4)
    assert octet.Session(net).inputs[0].shape == (1, 4)
    assert net.inputs[0].shape == ("batch", 4)


@pytest.mark.parametrize("wrong, words", [
    (numpy.zeros((3, 3), "f"), "shape"), (numpy.zeros((2, 3)), "float64"),
    ({"z": numpy.zeros((2, 3), "f")}, "'z'"), ({}, "missing"), ((), "0 arrays"),
    (numpy.array("text"), "type"), ({"x": None}, "not an array"), (None, "not an array"),
    ({"x": numpy.zeros((2, 3), "f"), 3: 4}, "no input")])
def test_wrong_inputs_are_named(wrong, words):
    s = octet.Session(tiny.identity())
    with pytest.raises((octet.Error, TypeError), match=words):
        s.run(wrong)
    assert s(numpy.ones((2, 3), "f")).sum() == 6


def test_threads_share_a_session(net, items):
    s = octet.Session(net, threads=1)
    expected = [s(x) for x in items]
    failed = []

    def work():
        for _ in range(20):
            for x, y in zip(items, expected):
                if not numpy.array_equal(s(x), y):
                    failed.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed


def test_a_network_may_be_used_by_several_threads(net):
    sizes = []
    threads = [threading.Thread(target=lambda: sizes.append(
        (len(net.to_bytes()), len(net.nodes), octet.Session(net, 1).macs))) for _ in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(sizes) == 6 and len(set(sizes)) == 1


def test_sessions_outlive_networks():
    s = octet.Session(octet.load(tiny.convolutions()))
    y = s(numpy.ones((1, 3, 16, 16), "f"))
    del s
    assert y.shape == (1, 8, 16, 16) and numpy.isfinite(y).all()


def test_measures(net):
    s = octet.Session(net)
    times = s.bench(runs=4, warmup=1)
    assert times["runs"] == 4 and 0 < times["min_ms"] <= times["median_ms"] <= times["p90_ms"]
    with pytest.raises(ValueError):
        s.bench(runs=0)
    rows = s.profile(runs=2)
    assert sum(r["macs"] for r in rows) == s.macs and all(r["ms"] >= 0 for r in rows)
    assert s.activation_bytes > 0 and "images" in repr(s)
