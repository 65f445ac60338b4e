# SPDX-License-Identifier: Apache-2.0
"""Quantizing: kinds of data, settings, the same bytes as the program, what goes wrong."""
import signal
import subprocess
import sys
import threading
import types

import numpy
import octet
import pytest


def test_gives_the_same_bytes_as_the_program(demo, pictures, tmp_path, run_program):
    demo.save(tmp_path / "fp32.onnx")
    run_program("quantize", tmp_path / "fp32.onnx", "-o", tmp_path / "c.onnx", "--images",
                pictures / "calib")
    q = octet.quantize(octet.load(tmp_path / "fp32.onnx"), pictures / "calib")
    assert q.to_bytes() == (tmp_path / "c.onnx").read_bytes()
    run_program("quantize", tmp_path / "fp32.onnx", "-o", tmp_path / "d.onnx", "--images",
                pictures / "calib", "--target", "ort", "--ranges", "kl", "--subset-size", "5",
                "--ignore-pattern", "/stem/.*")
    q = octet.quantize(tmp_path / "fp32.onnx", pictures / "calib", target="ort", subset_size=5,
                       ranges={"activations": "kl"},
                       ignored_scope=octet.IgnoredScope(patterns="/stem/.*"))
    assert q.to_bytes() == (tmp_path / "d.onnx").read_bytes()


class Loader:
    """As a torch DataLoader: batches, lists, labels."""

    def __init__(self, items, batch):
        self.items, self.batch = items, batch

    def __len__(self):
        return -(-len(self.items) // self.batch)

    def __iter__(self):
        for i in range(0, len(self.items), self.batch):
            yield [numpy.concatenate(self.items[i:i + self.batch]), numpy.zeros(self.batch)]


def test_all_kinds_of_data_give_the_same(net, items):
    expected = octet.quantize(net, items).to_bytes()

    class NoLength:
        def __iter__(self):
            return iter(items)

    kinds = {
        "tuples": [(x,) for x in items], "dicts": [{"images": x, "label": 3} for x in items],
        "an iterator": iter(items), "a generator": (x for x in items), "no length": NoLength(),
        "an extra axis": [x[None] for x in items], "no batch": [x[0] for x in items],
        "one batch": [numpy.concatenate(items)], "a Dataset": octet.Dataset(items),
    }
    for what, data in kinds.items():
        assert octet.quantize(net, data).to_bytes() == expected, what
    loader = Loader(items, 4)
    assert octet.quantize(net, loader, transform=lambda i: i[0]).to_bytes() == expected
    data = octet.Dataset(loader, lambda i: {"images": i[0]})
    assert octet.quantize(net, calibration_dataset=data).to_bytes() == expected
    some = octet.quantize(net, items[:3]).to_bytes()
    assert octet.quantize(net, octet.Dataset(iter(items), limit=3)).to_bytes() == some


def test_takes_only_the_subset(net, items):
    seen = []

    def endless():
        while True:
            seen.append(1)
            yield items[len(seen) % len(items)]

    q = octet.quantize(net, endless(), subset_size=4)
    assert q.summary["images"] == 4 and len(seen) == 4


def test_result_runs_and_tells(net, items):
    q = octet.quantize(net, items)
    assert q.summary["layers_quantized"] == q.summary["layers_total"] == 3
    assert [r["name"] for r in q.layers] == [f"/block{i}/conv" for i in range(3)]
    exact, rounded = octet.Session(net)(items[0]), q(items[0])
    assert 0 < numpy.abs(exact - rounded).max() < 0.1 * numpy.abs(exact).max()
    assert numpy.array_equal(q.session()(items[0]), rounded)
    assert "QuantizeLinear" in {n["op"] for n in q.network.nodes}
    assert "INT8" in q._repr_html_() and "3 of 3" in repr(q)
    with pytest.raises(octet.Error, match="copy"):
        q.network.simplify()
    q.copy().simplify()


def test_files_beside_the_network(net, items, tmp_path):
    q = octet.quantize(net, items)
    q.save_qmap(tmp_path / "a.json")
    q.save_quant_cfg(tmp_path / "b.json")
    assert (tmp_path / "a.json").stat().st_size and (tmp_path / "b.json").stat().st_size


def float_layers(q):
    return [r["name"] for r in q.layers if r["reason"]]


def test_words_of_nncf(net, items):
    q = octet.quantize(
        net, octet.Dataset(items), preset=octet.QuantizationPreset.MIXED, subset_size=5,
        target_device=octet.TargetDevice.CPU, fast_bias_correction=False,
        model_type=octet.ModelType.TRANSFORMER, ignored_scope=octet.IgnoredScope(
            names=["/block0/conv"], validate=False, types=["Softmax"]),
        advanced_parameters=octet.AdvancedQuantizationParameters(smooth_quant_alpha=0.5))
    assert float_layers(q) == ["/block0/conv"] and q.summary["images"] == 5
    assert float_layers(octet.quantize(net, items, ignored_scope=octet.IgnoredScope(
        subgraphs=[octet.Subgraph(["/block1/conv"], ["/block2/conv"])]))) == [
            "/block1/conv", "/block2/conv"]
    assert float_layers(octet.quantize(net, items, ignored_scope=["/block2/conv"])) == [
        "/block2/conv"]
    assert octet.quantize(net, items, advanced_parameters={"bias_correction": "none"}).to_bytes() == \
        octet.quantize(net, items, advanced_parameters=octet.AdvancedQuantizationParameters(
            disable_bias_correction=True)).to_bytes()


@pytest.mark.parametrize("settings, words", [
    ({"target": "tenserrt"}, "tensorrt"), ({"weight_bitz": 4}, "weight_bits"),
    ({"ignored_scope": octet.IgnoredScope(names=["/blok0/conv"])}, "/block0/conv"),
    ({"preset": "fast"}, "performance"), ({"weight_bits": 99}, "99")])
def test_wrong_settings_are_named(net, items, settings, words):
    with pytest.raises(octet.Error, match=words) as e:
        octet.quantize(net, items, **settings)
    assert e.value.reason == "arg"


@pytest.mark.parametrize("data", [
    [], iter(()), [numpy.zeros((1, 3, 8, 8, 8, 8), "f")], [numpy.zeros((2, 2), "f")], [7], [None],
    [("a", "b")], 7, [numpy.zeros((1, 3, 16, 16))], [{"x": 1}], "no/such/folder", [b"x"], None])
def test_wrong_data_is_refused(net, items, data):
    with pytest.raises((octet.Error, TypeError, ValueError)):
        octet.quantize(net, data)
    assert octet.quantize(net, items[:1]).summary["layers_total"] == 3


class Oops(Exception):
    pass


@pytest.mark.parametrize("after", [0, 1, 4])
def test_exceptions_of_the_data_come_out(net, items, after):
    def broken(x):
        broken.n += 1
        if broken.n > after:
            raise Oops(broken.n)
        return x

    broken.n = 0
    with pytest.raises(Oops):
        octet.quantize(net, items, transform=broken)
    assert octet.quantize(net, items[:1]).summary["layers_total"] == 3


class Broken:
    """Data that raises where it is asked to: beginning, length, an item, its shape, its memory."""

    def __init__(self, items, where):
        self.items, self.where = items, where
        self.dtype = items[0].dtype

    def _raise_in(self, where):
        if self.where == where:
            raise Oops(where)

    def __len__(self):
        self._raise_in("len")
        return len(self.items)

    def __iter__(self):
        self._raise_in("iter")
        yield self.items[0]
        self._raise_in("next")
        yield self if self.where in ("shape", "dlpack") else self.items[1]

    @property
    def shape(self):
        self._raise_in("shape")
        return self.items[0].shape

    def __dlpack__(self, **_):
        raise Oops("dlpack")


@pytest.mark.parametrize("where", ["len", "iter", "next", "shape", "dlpack"])
def test_exceptions_inside_iterators_come_out(net, items, where):
    with pytest.raises(Oops, match=where):
        octet.quantize(net, Broken(items, where))
    with pytest.raises(Oops):
        octet.quantize(net, (Broken(items, "shape") if i else x for i, x in enumerate(items)))
    for kind in (SystemExit, KeyboardInterrupt, GeneratorExit):
        def leave(x):
            raise kind

        with pytest.raises(kind):
            octet.quantize(net, items, transform=leave)
    assert octet.quantize(net, items[:1]).summary["images"] == 1


def test_progress_is_told_and_may_stop(net, items):
    told = []
    octet.quantize(net, items, progress=lambda *a: told.append(a))
    assert told and all(isinstance(w, str) and 0 <= d <= t for w, d, t in told)

    def stop(*_):
        raise Oops

    with pytest.raises(Oops):
        octet.quantize(net, items, progress=stop)
    octet.quantize(net, items, progress=True)


def test_progress_is_shown_by_tqdm(net, items, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, total, desc, leave):
            self.total, self.n = total, 0
            bars.append((desc, self))

        def update(self, n):
            self.n += n

        def close(self):
            self.closed = True

    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    octet.quantize(net, items, progress=True)
    assert bars and all(b.closed and 0 < b.n <= b.total for _, b in bars)


def test_a_callback_cannot_use_the_network_at_work(net, items):
    with pytest.raises(octet.Error, match="at work") as e:
        octet.quantize(net, items, transform=lambda x: (len(net.nodes), x)[1])
    assert e.value.reason == "state"
    with pytest.raises(octet.Error, match="at work"):
        octet.quantize(net, items, progress=lambda *_: net.to_bytes())
    other = octet.Session(net)  # a session may: its runs are its own
    octet.quantize(net, items, transform=lambda x: (other(x), x)[1])


def test_objects_may_die_in_callbacks(net, items):
    kept = [octet.quantize(net, items), octet.Session(net), octet.Session(net)]

    def drop(*_):
        kept.clear()

    octet.quantize(net, items, progress=drop)
    assert not kept


def test_interrupts_stop_the_work(net, items):
    def hit(x):
        signal.raise_signal(signal.SIGINT)
        return x

    with pytest.raises(KeyboardInterrupt):
        octet.quantize(net, items * 20, transform=hit)
    assert octet.quantize(net, items).summary["images"] == 6


LONG = """
import sys
import octet

def told(*_):
    sys.stdout.write("x")
    sys.stdout.flush()

octet.train(sys.argv[1], sys.argv[2], sys.argv[3], epochs=10000, batch=8, augment="none",
            progress=told).run()
"""


def test_ctrl_c_stops_octet_at_work(demo, pictures, tmp_path):
    """Ctrl-C from outside, while octet computes."""
    demo.save(tmp_path / "fp32.onnx")
    with subprocess.Popen([sys.executable, "-c", LONG, tmp_path / "fp32.onnx", pictures / "val",
                           pictures / "val.json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:
        assert child.stdout.read(1) == b"x"
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=120)
    assert b"KeyboardInterrupt" in errors and child.returncode == -signal.SIGINT


def test_threads_quantize_one_network(net, items):
    results = []
    threads = [threading.Thread(target=lambda: results.append(octet.quantize(net, items).to_bytes()))
               for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(results) == 4 and len(set(results)) == 1
