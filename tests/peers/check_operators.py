# SPDX-License-Identifier: Apache-2.0
"""Operators of other domains, one small network each, in octet and in the runtime they come from.

usage: check_operators.py OCTET [NAME...]

com.microsoft against ONNX Runtime, FakeQuantize against OpenVINO, EfficientNMS_TRT (which only
TensorRT runs) against the rules of its plugin written down here once more.
One line for each network, then `N passed, N failed, N skipped`.
"""

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import peers

MS = "com.microsoft"
RANDOM = np.random.default_rng(3)
B, S, H, HEADS = 2, 5, 16, 4


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32)


def codes(kind, *shape):
    info = np.iinfo(kind)
    return RANDOM.integers(info.min // 2, info.max // 2, shape).astype(kind)


def f32(x):
    return np.array(x, np.float32)


@dataclass
class Case:
    name: str
    op: str
    operands: list  # arrays, or None; those in `fixed` are constants of the file
    outputs: list = field(default_factory=lambda: ["y"])
    fixed: tuple = ()
    domain: str = MS
    attributes: dict = field(default_factory=dict)
    tolerance: float = 2e-5
    judge: object = None


def weights_lstm(hidden):
    return [codes(np.int8, 1, 3, 4 * hidden), codes(np.int8, 1, hidden, 4 * hidden)]


def attention_cases():
    x, w, b = numbers(B, S, H), 0.3 * numbers(H, 3 * H), numbers(3 * H)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32)
    heads = {"num_heads": HEADS}
    qkv = [numbers(B, S, H), numbers(B, 7, H), numbers(B, 7, H)]
    xq, wq = codes(np.uint8, B, S, H), codes(np.int8, H, 3 * H)
    yield Case("Attention", "Attention", [x, w, b], attributes=heads)
    yield Case("Attention, causal", "Attention", [x, w, b],
               attributes={**heads, "unidirectional": 1})
    yield Case("Attention, mask", "Attention", [x, w, b, mask], attributes=heads)
    yield Case("Attention, lengths", "Attention", [x, w, b, np.array([5, 3], np.int32)],
               attributes=heads)
    yield Case("Attention, added", "Attention", [x, w, b, mask, None, numbers(B, HEADS, S, S)],
               attributes={**heads, "scale": 0.4})
    yield Case("MultiHeadAttention", "MultiHeadAttention", qkv, attributes=heads)
    yield Case("MultiHeadAttention, bias", "MultiHeadAttention", [*qkv, numbers(3 * H)],
               attributes=heads)
    yield Case("MultiHeadAttention, mask", "MultiHeadAttention",
               [*qkv, None, np.array([[1] * 7, [1] * 4 + [0] * 3], np.int32)], attributes=heads)
    yield Case("QAttention", "QAttention",
               [xq, wq, b, f32(0.02), f32(0.01), mask, np.uint8(120), np.int8(0)],
               fixed=(1, 2, 3, 4, 6, 7), attributes=heads)


def norm_cases():
    x, skip, gamma, bias = numbers(B, S, H), numbers(B, S, H), numbers(H), numbers(H)
    ids, segments = (RANDOM.integers(0, n, (B, S)).astype(np.int32) for n in (11, 2))
    tables = [numbers(11, H), numbers(9, H), numbers(2, H)]
    mask = np.array([[1] * 5, [1] * 3 + [0] * 2], np.int32)
    yield Case("BiasGelu", "BiasGelu", [x, bias])
    yield Case("Gelu", "Gelu", [x])
    yield Case("FastGelu", "FastGelu", [x, bias], tolerance=1e-4)
    yield Case("FastGelu, no bias", "FastGelu", [x], tolerance=1e-4)
    yield Case("QuickGelu", "QuickGelu", [x], attributes={"alpha": 1.702})
    yield Case("SkipLayerNormalization", "SkipLayerNormalization", [x, skip, gamma, bias, bias],
               ["y", "", "", "sum"])
    yield Case("SkipSimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization",
               [x, skip, gamma, bias], ["y", "", "", "sum"])
    yield Case("SimplifiedLayerNormalization", "SimplifiedLayerNormalization", [x, gamma],
               domain="", attributes={"axis": -1, "epsilon": 1e-5})
    yield Case("EmbedLayerNormalization", "EmbedLayerNormalization",
               [ids, segments, *tables, gamma, bias, mask], ["y", "mask_index"],
               fixed=(2, 3, 4, 5, 6))
    yield Case("EmbedLayerNormalization, no segments", "EmbedLayerNormalization",
               [ids, None, tables[0], tables[1], None, gamma, bias], ["y", "mask_index"],
               fixed=(2, 3, 5, 6))


def layer_cases():
    hidden = 6
    x = numbers(5, 2, 3)
    w, r = weights_lstm(hidden)
    scale, zero = f32([0.01]), np.zeros(1, np.int8)
    # Of 8 bits, as ONNX Runtime quantizes activations and octet does not: a hundredth.
    yield Case("DynamicQuantizeLSTM", "DynamicQuantizeLSTM",
               [x, w, r, numbers(1, 8 * hidden), None, None, None, None, scale, zero, scale, zero],
               ["y", "h", "c"], fixed=(1, 2, 3, 8, 9, 10, 11),
               attributes={"hidden_size": hidden, "direction": "forward"}, tolerance=0.02)
    for bits, zeros in (4, None), (4, np.uint8), (4, np.float32), (8, np.uint8):
        k, n, block = 40, 6, 16
        blocks = -(-k // block)
        codes_n = codes(np.uint8, n, blocks, block * bits // 8)
        zero = (None if zeros is None else numbers(n * blocks) if zeros is np.float32
                else codes(np.uint8, n * -(-blocks * bits // 8)))
        yield Case(f"MatMulNBits, {bits} bits, zeros {zeros and zeros.__name__}", "MatMulNBits",
                   [numbers(3, k), codes_n, 0.1 * numbers(n * blocks), zero, None, numbers(n)],
                   fixed=(1, 2, 3, 5),
                   attributes={"K": k, "N": n, "bits": bits, "block_size": block}, tolerance=1e-4)
    yield Case("FusedMatMul", "FusedMatMul", [numbers(2, 4, 3), numbers(2, 4, 5)],
               attributes={"transA": 1, "alpha": 0.5})
    yield Case("FusedGemm", "FusedGemm", [numbers(4, 3), numbers(3, 5), numbers(5)],
               attributes={"activation": "Relu"})
    yield Case("FusedConv", "FusedConv", [numbers(1, 3, 8, 8), numbers(4, 3, 3, 3), numbers(4)],
               fixed=(1, 2), attributes={"activation": "Relu", "kernel_shape": [3, 3],
                                         "pads": [1] * 4})
    yield Case("DynamicQuantizeMatMul", "DynamicQuantizeMatMul",
               [numbers(4, 8), codes(np.uint8, 8, 5), f32(0.01), np.uint8(128), numbers(5)],
               fixed=(1, 2, 3, 4))
    yield Case("MatMulIntegerToFloat", "MatMulIntegerToFloat",
               [codes(np.uint8, 4, 8), codes(np.uint8, 8, 5), f32(0.02), f32(0.01), np.uint8(9),
                np.uint8(128), numbers(5)], fixed=(1, 2, 3, 4, 5, 6))
    yield Case("QGemm", "QGemm",
               [codes(np.uint8, 4, 8), f32(0.02), np.uint8(9), codes(np.uint8, 8, 5), f32(0.01),
                np.uint8(128), RANDOM.integers(-99, 99, 5).astype(np.int32), f32(0.05),
                np.uint8(128)], fixed=(1, 2, 3, 4, 5, 6, 7, 8), attributes={"alpha": 1.0})
    yield Case("STFT, rank 2", "STFT", [numbers(2, 40), np.int64(8), np.hanning(16).astype("f")],
               fixed=(1,), domain="", tolerance=1e-4)


def fake_quantize_cases():
    x = 2 * numbers(1, 3, 6, 6)
    low, high = f32([-1, -2, -1.5]).reshape(1, 3, 1, 1), f32([1, 2, 1.5]).reshape(1, 3, 1, 1)
    domain = "org.openvinotoolkit"
    for levels, ranges in ((256, [f32(0), f32(2.55)]), (256, [f32(-1.28), f32(1.27)]),
                           (255, [low, high]), (16, [f32(-1), f32(1)])):
        yield Case(f"FakeQuantize, {levels} levels, {ranges[0].size} ranges", "FakeQuantize",
                   [x, *ranges, *ranges], fixed=(1, 2, 3, 4), domain=domain,
                   attributes={"levels": levels}, tolerance=2e-5, judge=openvino)


def nms_cases():
    boxes = RANDOM.uniform(0, 60, (2, 40, 4)).astype(np.float32)
    boxes[..., 2:] = boxes[..., :2] + 15
    scores = RANDOM.permutation(2 * 40 * 3).reshape(2, 40, 3).astype(np.float32) / 240
    names = ["num_dets", "det_boxes", "det_scores", "det_classes"]
    plain = {"score_threshold": 0.25, "iou_threshold": 0.4, "max_output_boxes": 20,
             "background_class": -1, "score_activation": 0, "class_agnostic": 0, "box_coding": 0,
             "plugin_version": "1"}
    for title, domain, changes in (("", "TRT", {}), (", agnostic", "", {"class_agnostic": 1}),
                                   (", centres", "mmdeploy", {"box_coding": 1}),
                                   (", background", "TRT", {"background_class": 1}),
                                   (", logits", "", {"score_activation": 1})):
        yield Case("EfficientNMS_TRT" + title, "EfficientNMS_TRT", [boxes, scores], names,
                   domain=domain, attributes={**plain, **changes}, judge=efficient_nms)


def efficient_nms(case, _model, _inputs):
    a, (boxes, scores) = case.attributes, case.operands
    if a["box_coding"]:
        centre, size = boxes[..., :2], boxes[..., 2:]
        boxes = np.concatenate([centre - size / 2, centre + size / 2], -1)
    shown = 1 / (1 + np.exp(-scores)) if a["score_activation"] else scores
    n, most = len(boxes), a["max_output_boxes"]
    out = [np.zeros((n, 1), np.int32), np.zeros((n, most, 4), np.float32),
           np.zeros((n, most), np.float32), np.zeros((n, most), np.int32)]
    for image in range(n):
        kept = []
        for at in np.argsort(-scores[image], None, "stable"):
            anchor, label = divmod(int(at), scores.shape[2])
            if shown[image, anchor, label] < a["score_threshold"] or len(kept) == most:
                break
            box = boxes[image, anchor]
            if label != a["background_class"] and not any(
                    (a["class_agnostic"] or label == other) and
                    iou(box, seen) >= a["iou_threshold"] for seen, other in kept):
                out[1][image, len(kept)] = box
                out[2][image, len(kept)] = shown[image, anchor, label]
                out[3][image, len(kept)] = label
                kept.append((box, label))
        out[0][image] = len(kept)
    return out


def iou(a, b):
    size = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    both = size[0] * size[1]
    return both / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - both)


def openvino(_case, model, inputs):
    import openvino as ov
    compiled = ov.Core().compile_model(str(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(compiled(inputs).values())


def runtime(_case, model, inputs):
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def build(case, path):
    names = [f"x{i}" if a is not None else "" for i, a in enumerate(case.operands)]
    arrays = {n: np.asarray(a) for n, a in zip(names, case.operands) if n}
    fixed = {names[i] for i in case.fixed}
    node = helper.make_node(case.op, names, case.outputs, name="node", domain=case.domain,
                            **case.attributes)
    given = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in arrays.items() if n not in fixed]
    made = [onnx.ValueInfoProto(name=n) for n in case.outputs if n]
    constants = [numpy_helper.from_array(a, n) for n, a in arrays.items() if n in fixed]
    if case.domain != MS and case.domain:  # no runtime knows the types
        kinds = [TensorProto.INT32, TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT32]
        kinds = kinds if len(case.outputs) == 4 else [TensorProto.FLOAT]
        made = [helper.make_tensor_value_info(n, k, None) for n, k in zip(case.outputs, kinds)]
    graph = helper.make_graph([node], "one", given, made, constants)
    domains = {"": 17, case.domain or "": 17 if not case.domain else 1}
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid(d, v) for d, v in domains.items()]), path)
    return {n: a for n, a in arrays.items() if n not in fixed}


def check(octet, case, folder):
    path = Path(folder, "one.onnx")
    inputs = build(case, path)
    want = (case.judge or runtime)(case, path, inputs)
    files = peers.octet_run(octet, path, inputs, folder)
    worst = 0.0
    for name, w in zip([n for n in case.outputs if n], want):
        got = files[peers.file_name(name)]
        if got.shape != w.shape or got.dtype != w.dtype:
            return False, f"'{name}' is {got.dtype}{list(got.shape)}, want {w.dtype}{list(w.shape)}"
        worst = max(worst, float(np.max(np.abs(got.astype(float) - w.astype(float)), initial=0)))
    return worst <= case.tolerance, f"{worst:9.2e} (at most {case.tolerance:g})"


def main():
    octet, chosen = sys.argv[1], sys.argv[2:]
    ort.set_default_logger_severity(4)
    count = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        for make in (attention_cases, norm_cases, layer_cases, fake_quantize_cases, nms_cases):
            for case in make():
                if chosen and case.op not in chosen:
                    continue
                try:
                    passed, text = check(octet, case, folder)
                    verdict = "passed" if passed else "failed"
                except (RuntimeError, OSError, KeyError) as error:
                    verdict, text = "failed", str(error).splitlines()[0]
                except ort.capi.onnxruntime_pybind11_state.NotImplemented as error:
                    verdict, text = "skipped", str(error).splitlines()[0]
                count[verdict] += 1
                print(f"{case.name:48s} {verdict:8s} {text}", flush=True)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
