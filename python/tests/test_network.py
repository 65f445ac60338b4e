# SPDX-License-Identifier: Apache-2.0
"""Networks in and out."""
import octet
import pytest
import tiny


def test_looks_the_same_from_file_bytes_and_proto(tmp_path):
    data = tiny.add()
    (tmp_path / "add.onnx").write_bytes(data)

    class Proto:  # as onnx.ModelProto
        def SerializeToString(self):
            return data

    for model in (tmp_path / "add.onnx", str(tmp_path / "add.onnx"), data, bytearray(data), Proto()):
        net = octet.load(model)
        assert [v.name for v in net.inputs] == ["a", "b"]
        assert net.outputs[0] == ("sum", "float32", (2, 3))
        assert net.opset == 17 and net.name == "tiny" and net.producer == "tests"
        assert [n["op"] for n in net.nodes] == ["Add", "Mul"]
    assert octet.load(net) is net


def test_open_dimensions_have_names():
    net = octet.load(tiny.identity(("batch", 4)))
    assert net.inputs[0].shape == ("batch", 4)
    assert net.set_shape((7, 4)).outputs[0].shape == (7, 4)
    with pytest.raises(octet.Error):
        net.set_shape((7, 4), "nobody")


def test_bytes_and_file_are_the_same(tmp_path, net):
    net.save(tmp_path / "a.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == net.to_bytes()
    assert octet.load(net.to_bytes()).to_bytes() == net.to_bytes()
    assert net.copy().to_bytes() == net.to_bytes()


def test_simplifies_in_place(demo):
    raw = octet.load(demo.copy())
    assert raw.simplify() is raw
    folded = octet.load(tiny.model(
        [tiny.node("Identity", ["x"], ["m"]), tiny.node("Relu", ["m"], ["y"])],
        [("x", "float32", (2,))], [("y", "float32", (2,))]))
    assert len(folded.nodes) == 2 and len(folded.simplify().nodes) == 1
    with pytest.raises(octet.Error, match="nonsense"):
        folded.simplify(only=["nonsense"])


def test_keeps_outputs_and_metadata():
    net = octet.load(tiny.add()).keep_outputs(["sum"])
    assert [v.name for v in net.outputs] == ["sum"] and len(net.nodes) == 1
    net.set_metadata("who", "me")
    assert octet.load(net.to_bytes()).metadata["who"] == "me"
    net.set_metadata("who", None)
    assert "who" not in net.metadata


def test_writes_openvino(tmp_path, net):
    net.save(tmp_path / "net.xml")
    assert (tmp_path / "net.bin").exists()
    assert octet.load(tmp_path / "net.xml").inputs[0].shape == (1, 3, 16, 16)


@pytest.mark.parametrize("model, reason", [
    ("not/there.onnx", "io"), (b"nonsense", "format"), (tiny.add()[:-9], "format")])
def test_errors_have_a_text_and_a_reason(model, reason):
    with pytest.raises(octet.Error) as e:
        octet.load(model)
    assert e.value.reason == reason and str(e.value)


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="int"):
        octet.load(7)


def test_notebooks_show_networks(net):
    assert "images" in net._repr_html_() and "<table>" in net._repr_html_()
    assert "3x16x16" in repr(net)


def test_lists_choices():
    assert "octet" in octet.choices("targets") and "ranges" in octet.choices()
    assert "data.subset_size" in octet.settings()
