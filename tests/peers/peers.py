# SPDX-License-Identifier: Apache-2.0
"""What the peer scripts share: the networks, their preprocessing, and how octet is called."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("OCTET_SHARED", ROOT.parent / "shared"))
DATA = SHARED / "data"

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def need_shared(script):
    """Ends the script with the closing line when the test data is not there."""
    if DATA.is_dir():
        return
    print(f"{script}: skipped: {SHARED} is not there")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def has_dot_product():
    """Without one (VNNI) OpenVINO and ONNX Runtime sum products of bytes in 16 bits, which saturate."""
    flags = Path("/proc/cpuinfo").read_text().split("flags", 2)[1].split("\n", 1)[0]
    return "vnni" in flags


# Where ONNX Runtime's setting against it (session.x64quantprecision) fails or does nothing.
SATURATES = ("mobilenetv2_qdq_244", "dynamic_quantize_matmul_int8",
             "dynamic_quantize_matmul_int8_bias")


def is_saturated(name):
    """Is ONNX Runtime no judge of this network on this CPU?"""
    return name in SATURATES and not has_dot_product()


def nchw(a):
    return np.ascontiguousarray(a.astype(np.float32).transpose(2, 0, 1)[None])


@dataclass(frozen=True)
class Preparation:
    """How a network wants its pictures: fitted as bytes, then as numbers."""
    fit: str  # letterbox, top_left, stretch or crop
    size: int
    values: object  # RGB bytes [height, width, 3] -> numbers, in the network's order of colours

    def place(self, width, height):
        """Where the resized picture lies in the input: x, y, width, height."""
        if self.fit == "stretch":
            return 0, 0, self.size, self.size
        if self.fit == "crop":
            scale = self.size / 0.875 / min(width, height)
            w, h = (max(self.size, round(d * scale)) for d in (width, height))
            return -((w - self.size) // 2), -((h - self.size) // 2), w, h
        scale = self.size / max(width, height)
        w, h = round(width * scale), round(height * scale)
        x, y = ((self.size - d) // 2 if self.fit == "letterbox" else 0 for d in (w, h))
        return x, y, w, h

    def pixels(self, image):
        x, y, w, h = self.place(*image.size)
        canvas = Image.new("RGB", (self.size, self.size), (114, 114, 114))
        # Across, then down, as octet does; Pillow 13 alone takes the cheaper order, which rounds
        # differently.
        across = image.resize((w, image.height), Image.BILINEAR)
        canvas.paste(across.resize((w, h), Image.BILINEAR), (x, y))
        return np.asarray(canvas)

    def numbers(self, pixels):
        return nchw(self.values(pixels))

    def __call__(self, image):
        return self.numbers(self.pixels(image))


def normalised(a, mean, std):
    return (a - np.asarray(mean)) / np.asarray(std)


def nanodet_values(a):
    return normalised(a[:, :, ::-1], (103.53, 116.28, 123.675), (57.375, 57.12, 58.395))


def imagenet_values(a):
    return normalised(a / 255.0, IMAGENET_MEAN, IMAGENET_STD)


def classifier(size):
    return Preparation("crop", size, imagenet_values)


YOLOV8 = Preparation("letterbox", 640, lambda a: a / 255.0)
YOLOX = Preparation("top_left", 416, lambda a: a[:, :, ::-1])
PICODET = Preparation("stretch", 416, imagenet_values)
NANODET = Preparation("stretch", 416, nanodet_values)
YOLO_NAS = Preparation("letterbox", 320, lambda a: a / 255.0)
MOBILENET_V1 = Preparation("crop", 224, lambda a: a / 127.5 - 1.0)


@dataclass
class Network:
    path: str  # below DATA
    input: str
    images: str  # folder below DATA
    prepare: Preparation  # image -> array
    quantized: bool = False
    extra: dict = field(default_factory=dict)  # further inputs

    @property
    def name(self):
        return Path(self.path).stem

    @property
    def file(self):
        return DATA / self.path


NETWORKS = [
    Network("models/yolov8n.onnx", "images", "coco/val", YOLOV8),
    Network("models/yolox_nano_416.onnx", "images", "coco/val", YOLOX),
    Network("models/picodet_s_416.onnx", "image", "coco/val", PICODET),
    Network("models/nanodet_m_416.onnx", "input.1", "coco/val", NANODET),
    Network("models/mobilenet_v1_0.25_224.onnx", "input", "imagenet/val", MOBILENET_V1),
    Network("models/yolov8n_qdq_int8.onnx", "images", "coco/val", YOLOV8, True),
    Network("models/yolov8n_qdq_allops_broken.onnx", "images", "coco/val", YOLOV8, True),
    Network("models/yolov8n_dynint8.onnx", "images", "coco/val", YOLOV8, True),
    Network("models/mobilenetv2_qdq_244.onnx", "image", "imagenet/val", classifier(244), True),
    Network("models/mobilenetv2_qoperator.onnx", "input", "imagenet/val", classifier(224), True),
    Network("models/nms-yolov8.onnx", "detection", "", None,
            extra={"config": np.array([100, 0.65, 0.25], np.float32)}),
    Network("yolo-nas/yolo_nas_bccd_train.onnx", "input", "bccd/images", YOLO_NAS),
    Network("yolo-nas/yolo_nas_bccd_folded.onnx", "input", "bccd/images", YOLO_NAS),
    Network("pt2/mobilenet_v3_small_035.onnx", "input", "imagenet/val", classifier(96)),
    Network("pt2/resnet_tiny.onnx", "input", "imagenet/val", classifier(96)),
    Network("pt2/squeezenet1_1.onnx", "input", "imagenet/val", classifier(96)),
]


def by_name(name):
    return next(n for n in NETWORKS if n.name == name or n.name.startswith(name + "_"))


def made_up_detections(seed):
    """Boxes in clusters, so that suppression has work to do, and scores with clear gaps."""
    rng = np.random.default_rng(seed)
    n, classes = 600, 80
    centre = rng.uniform(100, 540, (20, 2))[rng.integers(0, 20, n)] + rng.normal(0, 6, (n, 2))
    size = rng.uniform(40, 120, (n, 2))
    scores = rng.uniform(0, 0.2, (n, classes))
    scores[np.arange(n), rng.integers(0, classes, n)] = rng.permutation(n) / n
    return np.concatenate([centre, size, scores], 1).T[None].astype(np.float32)


def inputs_of(network, count=2):
    """`count` dictionaries of named input arrays, from the first images in order of names."""
    if network.prepare is None:
        first = [made_up_detections(i) for i in range(count)]
    else:
        files = sorted(p for p in (DATA / network.images).iterdir()
                       if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
        first = [network.prepare(Image.open(p).convert("RGB")) for p in files[:count]]
    return [{network.input: a, **network.extra} for a in first]


def file_name(value):
    return value.replace("/", "_").replace(":", "_") + ".npy"


def octet_run(octet, model, inputs, folder, threads=None):
    """Runs `octet run`; the outputs by file name. Raises RuntimeError with what octet said."""
    folder = Path(folder)
    out = folder / "out"
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*.npy"):
        old.unlink()
    command = [str(octet), "run", str(model), "--out", str(out)]
    for i, (name, array) in enumerate(inputs.items()):
        file = folder / f"in{i}.npy"
        np.save(file, array)
        command += ["--input", f"{name}={file}"]
    if threads:
        command += ["--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip() or f"exit {done.returncode}")
    return {p.name: np.load(p) for p in out.glob("*.npy")}
