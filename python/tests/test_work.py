# SPDX-License-Identifier: Apache-2.0
"""What is done with networks and pictures: evaluating, detecting, analyzing, training, pruning."""
import json

import numpy
import octet
import pytest


def test_scores_as_the_program_does(demo, pictures, tmp_path, run_program):
    demo.save(tmp_path / "fp32.onnx")
    out = run_program("eval", tmp_path / "fp32.onnx", "--images", pictures / "val", "--annotations",
                      pictures / "val.json", "--json", "--quiet").stdout
    got = octet.evaluate(demo, pictures / "val", pictures / "val.json")
    text = out.decode()
    assert f'"ap": {json.dumps(got["ap"])[:6]}' in text.replace('":  ', '": ')
    assert got["images"] == 16 and len(got["classes"]) == 8 and "AP50" in got._repr_html_()


def test_finds_the_same_in_files_and_arrays(demo, pictures, tmp_path):
    path = pictures / "val" / "000000.jpg"
    detector = octet.Detector(demo)
    found = detector(path, out=tmp_path / "drawn.jpg")
    assert found and {"name", "score", "x", "y", "width", "height"} <= set(found[0])
    assert (tmp_path / "drawn.jpg").stat().st_size
    assert octet.detect(demo, [path, str(path)]) == [found, found]
    assert found == sorted(found, key=lambda r: -r["score"])
    grey = numpy.full((40, 60, 3), 114, "uint8")
    assert detector(grey, score=0.9) == []
    for wrong in (grey[..., :2], grey.astype("f"), grey[0], 7, "no.jpg"):
        with pytest.raises((octet.Error, TypeError)):
            detector(wrong)
    with pytest.raises(octet.Error, match="max_detections"):
        detector(path, max_detections=0)


def test_analyzes_and_reports(demo, pictures, tmp_path):
    q = octet.quantize(demo, pictures / "calib")
    a = octet.analyze(q, data=pictures / "calib", images=2)
    assert a.images == 2 and a.layers and a.points
    assert {"name", "op", "alone_noise", "all_cosine"} <= set(a.layers[0])
    same = octet.analyze(demo, q.copy(), pictures / "calib", images=1, statistics=False)
    assert [r["name"] for r in same.layers] == [r["name"] for r in a.layers]
    assert "<table>" in a._repr_html_()
    page = octet.report(q, data=octet.Dataset(pictures / "calib", limit=4), folder=tmp_path / "r",
                        truth=pictures / "val", annotations=pictures / "val.json", runs=2)
    assert "AP" in (tmp_path / "r" / "index.html").read_text() and "iframe" in page._repr_html_()
    with pytest.raises(TypeError):
        octet.analyze(demo, data=pictures / "calib")


def test_prunes(demo, pictures):
    p = octet.prune(demo, flops=0.3)
    assert p.totals["macs_left"] < 0.75 * p.totals["macs"]
    assert any(r["channels_left"] < r["channels"] for r in p.layers)
    x = numpy.zeros(demo.inputs[0].shape, "f")
    assert octet.Session(p.network)(x)[0].shape == octet.Session(demo)(x)[0].shape
    with pytest.raises(octet.Error):
        octet.prune(demo)
    fitted = octet.prune(demo, pictures / "val", flops=0.3)
    assert fitted.totals == p.totals and fitted.to_bytes() != p.to_bytes()


def test_trains_and_goes_on(demo, pictures, tmp_path):
    def job():
        return octet.train(demo, pictures / "val", pictures / "val.json", epochs=2, batch=8,
                           rate=0.001, augment="none")

    first = job()
    told = [e["epoch"] for e in first]
    assert told == [1, 2] and first.epochs[0]["loss"] > 0
    second = job()
    next(iter(second))
    second.save(tmp_path / "half.safetensors")
    third = job().resume(tmp_path / "half.safetensors").run()
    assert [e["epoch"] for e in third.epochs] == [2]
    assert third.network.to_bytes() == first.network.to_bytes() != demo.to_bytes()
    with pytest.raises(octet.Error, match="epochz"):
        octet.train(demo, pictures / "val", pictures / "val.json", epochz=2)


def test_trains_quantized(demo, pictures):
    job = octet.qat(demo, pictures / "val", pictures / "val.json", epochs=1, batch=8,
                    calibration=pictures / "calib", quantize={"weight_bits": 4}, augment="none")
    net = job.run().network
    assert "QuantizeLinear" in {n["op"] for n in net.nodes}
