# SPDX-License-Identifier: Apache-2.0
"""Promises: layers go back to float until a measure is good enough."""
import math

import numpy
import octet
import pytest


@pytest.fixture
def closeness(net, items):
    """A measure: 1 for what the float network gives, less the further away."""
    exact = octet.Session(net)
    expected = [exact(x) for x in items]

    def measure(network):
        measure.calls += 1
        s = octet.Session(network)
        return -max(float(numpy.abs(s(x) - y).max()) for x, y in zip(items, expected))

    measure.calls = 0
    return measure


def test_a_function_is_the_measure(net, items, closeness):
    easy = octet.quantize(net, items, max_drop=100, measure=closeness, weight_bits=4)
    assert easy.promise["holds"] and easy.promise["restored"] == []
    worst = -easy.promise["first_score"]
    assert easy.promise["float_score"] == 0 and worst == pytest.approx(-closeness(easy.network))
    q = octet.quantize(net, items, max_drop=0.8 * worst, measure=closeness, weight_bits=4)
    assert q.promise["holds"] and q.promise["score"] >= -0.8 * worst and q.promise["restored"]
    assert {r["name"] for r in q.layers if r["reason"]} == set(q.promise["restored"])
    assert closeness(q.network) == pytest.approx(q.promise["score"])
    assert q.promise["steps"][0]["move"] == "start" and "promise kept" in q._repr_html_()
    assert octet.quantize(net, items).promise is None


def test_what_cannot_be_kept_is_warned_of(net, items):
    scores = iter(range(100, 0, -1))
    with pytest.warns(UserWarning, match="cannot be kept"):
        q = octet.quantize(net, items, max_drop=0.5, measure=lambda _: next(scores))
    assert not q.promise["holds"]


class Oops(Exception):
    pass


@pytest.mark.parametrize("after", [1, 2])
def test_exceptions_of_the_measure_come_out(net, items, after):
    def broken(_):
        broken.n += 1
        if broken.n >= after:
            raise Oops
        return 1.0

    broken.n = 0
    with pytest.raises(Oops):
        octet.quantize(net, items, max_drop=0.1, measure=broken)
    for answer, error in ((math.nan, ValueError), ("much", TypeError), (None, TypeError)):
        with pytest.raises(error):
            octet.quantize(net, items, max_drop=0.1, measure=lambda _: answer)
    assert octet.quantize(net, items).promise is None


@pytest.mark.parametrize("wrong", [
    {"max_drop": 0.1}, {"measure": len}, {"max_drop": 0.1, "measure": 7},
    {"max_drop": -1, "measure": lambda _: 1}, {"min_repeat": 2},
    {"min_repeat": 0.9, "max_noise": 0.1}, {"drop_type": "total", "max_drop": 1, "measure": len}])
def test_promises_need_a_measure(net, items, wrong):
    with pytest.raises((TypeError, octet.Error)):
        octet.quantize(net, items, **wrong)


def test_labels_are_the_measure_as_in_the_program(demo, pictures, tmp_path, run_program):
    demo.save(tmp_path / "fp32.onnx")
    q = octet.quantize(tmp_path / "fp32.onnx", pictures / "calib", max_drop=0.2,
                       truth=pictures / "val", annotations=pictures / "val.json")
    assert q.promise["holds"] and q.promise["float_score"] > 0.5
    run_program("quantize", tmp_path / "fp32.onnx", "-o", tmp_path / "c.onnx", "--images",
                pictures / "calib", "--max-drop", 0.2, "--eval-images", pictures / "val",
                "--annotations", pictures / "val.json")
    mine, others = q.copy().metadata, octet.load(tmp_path / "c.onnx").metadata
    assert {k: v for k, v in mine.items() if "promise" in k} == \
        {k: v for k, v in others.items() if "promise" in k} != {}


def test_noise_is_the_measure(net, items):
    noise = octet.quantize(net, items, max_noise=1, weight_bits=4).promise["score"]
    q = octet.quantize(net, items, max_noise=0.8 * noise, weight_bits=4)
    assert q.promise["holds"] and q.promise["score"] <= 0.8 * noise and q.promise["restored"]


def test_the_words_of_nncf(net, items, closeness):
    exact = octet.Session(net)

    def validate(model, data):
        worst = max(float(numpy.abs(model(x) - exact(x)).max()) for x in data)
        return 1 - worst, [worst]

    q = octet.quantize_with_accuracy_control(net, octet.Dataset(items), octet.Dataset(items), validate,
                                             max_drop=0.5, drop_type=octet.DropType.RELATIVE,
                                             subset_size=4)
    assert q.promise["holds"] and q.promise["float_score"] == 1 and q.summary["images"] == 4
