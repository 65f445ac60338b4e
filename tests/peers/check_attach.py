# SPDX-License-Identifier: Apache-2.0
"""Do files of `octet attach`, `convert` and `extract` run elsewhere, with the accuracy they had before?

usage: check_attach.py OCTET [--count N]

The demo network, float and INT8, gets its preprocessing and NMS: AP on N pictures in octet, ONNX
Runtime and OpenVINO, in both formats, one picture at a time and four, against that of the network
as it was, in the same runtime.
Its halves in float16 and bfloat16 run in ONNX Runtime, and so do its two parts one after the other.
One line for each file, then `N passed, N failed`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov
from PIL import Image

import boxes
import peers

DEMO = peers.ROOT / "examples" / "demo" / "detector.onnx"
SETTINGS = ["--score", "0.01", "--pre-nms", "30000", "--max-det", "300"]
# A score next to another one may change places. In INT8, codes next to a tie change with the place
# where pixels are divided: runtimes merge that into the first layer.
AGREEMENT = {"float": .0005, "INT8": .003}


class Octet:
    def __init__(self, program, work):
        self.program, self.work = str(program), work

    def run(self, *words):
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def eval(self, model, batch=1):
        text = self.run("eval", model, "--images", self.work / "val", "--annotations",
                        self.work / "val.json", "--batch", batch, "--json", "--quiet")
        return json.loads(text)["ap"]

    def score(self, found):
        results = self.work / "results.json"
        results.write_text(json.dumps(found))
        text = self.run("score", "--annotations", self.work / "val.json", "--results", results, "--json")
        return json.loads(text)["ap"]


def make_runner(path, runtime):
    """bytes [n,3,h,w] -> outputs by name"""
    if runtime == "ORT":
        session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        names = [o.name for o in session.get_outputs()]
        return lambda x: dict(zip(names, session.run(None, {name: x})))
    compiled = ov.Core().compile_model(str(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda x: {o.any_name: np.array(v) for o, v in compiled([x]).items()}


def rows_of(outputs, n):
    """For each picture corners, scores and classes, whatever the format."""
    if "flat_predictions" in outputs:
        flat = outputs["flat_predictions"]
        return [flat[flat[:, 0] == i][:, 1:] for i in range(n)]
    rows = []
    for i in range(n):
        k = int(outputs["num_predictions"][i, 0])
        columns = [outputs["pred_boxes"][i], outputs["pred_scores"][i][:, None],
                   outputs["pred_classes"][i][:, None]]
        if any((c[k:] != -1).any() for c in columns):
            raise RuntimeError("places without a box are not -1")
        rows.append(np.concatenate(columns, 1)[:k])
    return rows


def detections(run, truth, pictures, batch):
    found = []
    for first in range(0, len(pictures), batch):
        part = pictures[first:first + batch]
        padded = np.concatenate([part, np.zeros((batch - len(part), *part.shape[1:]), np.uint8)])
        for image, rows in zip(truth["images"][first:], rows_of(run(padded), batch)[:len(part)]):
            size = np.array([image["width"], image["height"]] * 2)
            for x1, y1, x2, y2, score, k in rows[:100]:
                x1, y1, x2, y2 = np.clip([x1, y1, x2, y2], 0, size)
                found.append({"image_id": image["id"], "score": float(score),
                              "category_id": truth["categories"][int(k)]["id"],
                              "bbox": [float(v) for v in (x1, y1, x2 - x1, y2 - y1)]})
    return found


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def say(self, what, good, text):
        self.passed += good
        self.failed += not good
        print(f"{what:42} {text}  {'ok' if good else 'DIFFERS'}", flush=True)


def plain_detections(run, truth, pictures):
    """What the network as it was finds, suppressed here."""
    found = []
    for image, picture in zip(truth["images"], pictures):
        outputs = run(picture[None].astype(np.float32) / 255)
        width, height = image["width"], image["height"]
        placed = boxes.detect(outputs["boxes"][0], outputs["scores"][0], (0, 0, width, height), width, height)
        for box, score, k in zip(*placed):
            found.append({"image_id": image["id"], "category_id": truth["categories"][k]["id"],
                          "bbox": [float(v) for v in box], "score": float(score)})
    return found


def check_attached(octet, checks, name, model, pictures):
    truth = json.loads((octet.work / "val.json").read_text())
    before = [octet.eval(model)] + [
        octet.score(plain_detections(make_runner(model, r), truth, pictures)) for r in ("ORT", "OpenVINO")]
    checks.say(f"{name} as it was", True,
               f"AP octet {before[0]:.4f} ORT {before[1]:.4f} OpenVINO {before[2]:.4f}")
    for form in ("batch", "flat"):
        for batch in (1, 4):
            out = octet.work / f"{name}_{form}_{batch}.onnx"
            octet.run("attach", model, "-o", out, "--format", form, "--batch", batch, *SETTINGS)
            aps = [octet.eval(out, batch)] + [
                octet.score(detections(make_runner(out, r), truth, pictures, batch))
                for r in ("ORT", "OpenVINO")]
            checks.say(f"{name} {form} batch {batch}",
                       all(abs(a - b) < AGREEMENT[name] for a, b in zip(aps, before)),
                       f"AP octet {aps[0]:.4f} ORT {aps[1]:.4f} OpenVINO {aps[2]:.4f}")


def check_half(octet, checks, pictures):
    x = pictures[:1].astype(np.float32) / 255

    def outputs(path):
        session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        return session.run(None, {session.get_inputs()[0].name: x})

    want = outputs(DEMO)
    for words, most in (("--half", .01), ("--bf16", .08)):
        out = octet.work / f"demo{words}.onnx"
        octet.run("convert", DEMO, "-o", out, words)
        off = max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(outputs(out), want))
        ap = octet.eval(out)
        share = out.stat().st_size / DEMO.stat().st_size
        checks.say(f"convert {words}", off < most and share < .6 and abs(ap - octet.eval(DEMO)) < .005,
                   f"{off:.1e} off in ORT, AP {ap:.4f}, {share:.2f} of the size")


def check_parts(octet, checks, pictures):
    """Two parts one after the other are the whole."""
    nodes = onnx.load(str(DEMO)).graph.node
    cut = next(n.output[0] for n in nodes if n.op_type == "Relu")
    head, tail = octet.work / "head.onnx", octet.work / "tail.onnx"
    octet.run("extract", DEMO, "-o", head, "--outputs", cut)
    octet.run("extract", DEMO, "-o", tail, "--inputs", cut)
    x = pictures[:1].astype(np.float32) / 255
    want = ort.InferenceSession(str(DEMO)).run(None, {"image": x})
    middle = ort.InferenceSession(str(head)).run(None, {"image": x})[0]
    got = ort.InferenceSession(str(tail)).run(None, {cut: middle})
    off = max(float(np.abs(g - w).max()) for g, w in zip(got, want))
    checks.say("extract, two parts", off < 1e-3, f"{off:.1e} off")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("--count", type=int, default=16)
    args = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        octet = Octet(Path(args.octet).resolve(), work)
        octet.run("synth", "--out", work, "--split", "val", "--count", args.count)
        truth = json.loads((work / "val.json").read_text())
        pictures = np.stack([np.asarray(Image.open(work / "val" / Path(i["file_name"]).name).convert("RGB"))
                             for i in truth["images"]]).transpose(0, 3, 1, 2).copy()
        int8 = work / "int8.onnx"
        octet.run("quantize", DEMO, "-o", int8, "--images", work / "val", "--target", "ort")
        for name, model in (("float", DEMO), ("INT8", int8)):
            check_attached(octet, checks, name, model, pictures)
        check_half(octet, checks, pictures)
        check_parts(octet, checks, pictures)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
