# SPDX-License-Identifier: Apache-2.0
"""Holds octet's loss of YOLOX against super-gradients' YoloXDetectionLoss.

usage: check_yolox_loss.py LOSS_VALUES OCTET

LOSS_VALUES is the build's tests/loss_values. Both compute in float64 at random predictions and, where
../shared is there, at those that yolox_nano makes of labelled pictures: the loss, its parts and its
gradient. Without torch or super-gradients everything is skipped. Ends with
`N passed, N failed, N skipped`.
"""

import ast
import importlib.metadata
import importlib.util
import json
import logging
import os
import subprocess
import sys
import tempfile
import types
import warnings
from pathlib import Path

import numpy as np

from check_losses import STRIDES, distance, installed

DATA = Path(os.environ.get("OCTET_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
TOLERANCE = 1e-9
# As super-gradients has it; octet's defaults are those of YOLOX itself.
FORM = {"candidates": "box_or_centre", "radius": 2.5}


def random_batch(seed, n_boxes, size=160, n_classes=6):
    """Raw predictions [pictures, anchors, 5 + classes] near their cells, labels."""
    rng = np.random.default_rng(seed)
    anchors = sum((size // s) ** 2 for s in STRIDES)
    pred = rng.normal(-1, 1.5, (len(n_boxes), anchors, 5 + n_classes))
    pred[..., :2] = rng.uniform(-.5, 1.5, pred[..., :2].shape)
    pred[..., 2:4] = rng.normal(.8, .6, pred[..., 2:4].shape)
    labels = np.full((len(n_boxes), max(max(n_boxes), 1), 5), -1.0)
    for i, n in enumerate(n_boxes):
        for j in range(n):
            w, h = size * np.exp(rng.uniform(-2.5, -.3, 2))
            x, y = rng.uniform(0, 1, 2) * (size - w, size - h)
            labels[i, j] = rng.integers(n_classes), x, y, x + w, y + h
    return size, pred, labels.astype(np.float32)


def picture_labels(image, annotations, categories, scale):
    rows = [(categories.index(a["category_id"]), x, y, x + w, y + h)
            for a in annotations if a["image_id"] == image["id"] and not a["iscrowd"]
            for x, y, w, h in [[v * scale for v in a["bbox"]]]]
    return np.array(rows).reshape(-1, 5)


def real_batch(program, n_pictures=4, size=416):
    """What the last convolutions of yolox_nano give on pictures of COCO."""
    from PIL import Image

    every = json.loads((DATA / "coco" / "instances_val320.json").read_text())
    categories = sorted(c["id"] for c in every["categories"])
    preds, rows = [], []
    for image in every["images"][:n_pictures]:
        picture = Image.open(DATA / "coco" / "val" / image["file_name"]).convert("RGB")
        scale = size / max(picture.size)
        small = picture.resize([round(v * scale) for v in picture.size], Image.BILINEAR)
        pixels = np.full((size, size, 3), 114, np.uint8)
        pixels[:small.height, :small.width] = np.asarray(small)[..., ::-1]
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/in.npy", pixels.transpose(2, 0, 1)[None].astype(np.float32))
            subprocess.run([program, "run", DATA / "models" / "yolox_nano_416.onnx", "--input",
                            f"{folder}/in.npy", "--out", folder, "--quiet", "--dump",
                            "^onnx::(Sigmoid|Concat)_1(045|062|063|087|104|105|129|146|147)$"],
                           check=True)
            levels = [[np.load(f"{folder}/onnx__{n}.npy") for n in names] for names in (
                ("Concat_1062", "Sigmoid_1063", "Sigmoid_1045"),
                ("Concat_1104", "Sigmoid_1105", "Sigmoid_1087"),
                ("Concat_1146", "Sigmoid_1147", "Sigmoid_1129"))]
        preds.append(np.concatenate([np.concatenate(level, 1).reshape(1, 85, -1).transpose(0, 2, 1)
                                     for level in levels], 1))
        rows.append(picture_labels(image, every["annotations"], categories, scale))
    labels = np.full((n_pictures, max(len(r) for r in rows), 5), -1.0)
    for i, r in enumerate(rows):
        labels[i, :len(r)] = r
    return size, np.concatenate(preds).astype(np.float64), labels.astype(np.float32)


def octet_loss(program, size, pred, labels, **attributes):
    words = {"strides": STRIDES, "sizes": [size // s for s in STRIDES for _ in range(2)], **FORM,
             **attributes}
    text = [f"{k}={','.join(map(str, v)) if isinstance(v, (list, tuple)) else v}"
            for k, v in words.items()]
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/0.npy", pred)
        np.save(f"{folder}/1.npy", labels)
        subprocess.run([program, "YoloXLoss", folder, *text], check=True)
        return [np.load(f"{folder}/{k}.npy") for k in ("loss", "parts", "grad0")]


def functions_of(path, names, **known):
    """Functions of a file whose imports are not wanted."""
    tree = ast.parse(path.read_text())
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in names]
    exec(compile(tree, path, "exec"), known)
    return {n: known[n] for n in names}


def super_gradients_module():
    """The file of the loss alone: the package itself wants dependencies of years ago."""
    import math
    import torch

    def stub(name, **members):
        module = types.ModuleType(f"super_gradients.{name}" if name else "super_gradients")
        module.__path__ = []
        module.__dict__.update(members)
        sys.modules[module.__name__] = module

    root = importlib.metadata.distribution("super-gradients").locate_file("super_gradients/training")
    for name in "", "common", "common.registry", "common.abstractions", "training":
        stub(name)
    stub("common.object_names", Losses=types.SimpleNamespace(YOLOX_LOSS="", YOLOX_FAST_LOSS=""))
    stub("common.registry.registry", register_loss=lambda **_: lambda c: c)
    stub("common.abstractions.abstract_logger", get_logger=logging.getLogger)
    stub("training.utils", torch_version_is_greater_or_equal=lambda major, minor: True)
    stub("training.utils.detection_utils",
         **functions_of(Path(root) / "utils" / "detection_utils.py",
                        ("_iou", "calculate_bbox_iou_matrix"), torch=torch, math=math))
    spec = importlib.util.spec_from_file_location("yolox_loss",
                                                  Path(root) / "losses" / "yolox_loss.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def super_gradients_loss(size, pred, labels, l1, overlap):
    import torch

    torch.set_default_dtype(torch.float64)
    x = torch.tensor(pred, requires_grad=True)
    rows = [(i, r[0], *(r[1:3] + r[3:]) / 2, *(r[3:] - r[1:3]))
            for i, picture in enumerate(labels.astype(np.float64)) for r in picture if r[0] >= 0]
    cells = [(size // s) ** 2 for s in STRIDES]
    levels = [v.reshape(len(pred), 1, size // s, size // s, -1)
              for v, s in zip(x.split(cells, 1), STRIDES)]
    loss = super_gradients_module().YoloXDetectionLoss(STRIDES, pred.shape[2] - 5, use_l1=l1,
                                                       iou_type=overlap)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        total, parts = loss(levels, torch.tensor(rows).reshape(-1, 6))
    total.backward()
    return [total.item(), parts.numpy()[:4] * (5, 1, 1, 1), x.grad.numpy()]


def batches(program):
    for seed, n_boxes in enumerate(((8, 3, 20), (5, 0, 12, 1), (0, 0), (40,), (1, 1))):
        yield f"random, boxes {n_boxes}", random_batch(seed, n_boxes)
    if DATA.is_dir():
        yield "yolox_nano on pictures of COCO", real_batch(program)


def main():
    count = {"passed": 0, "failed": 0, "skipped": 0}
    if not installed("super-gradients"):
        print("super-gradients or torch is not installed\n0 passed, 0 failed, 1 skipped")
        return 0
    for name, batch in batches(sys.argv[2]):
        for l1, overlap in ((False, "iou"), (True, "iou"), (True, "giou")):
            want = super_gradients_loss(*batch, l1, overlap)
            have = octet_loss(sys.argv[1], *batch, weight_l1=int(l1), overlap=overlap)
            off = [distance(h, w) for h, w in zip(have, want)]
            good = max(off) <= TOLERANCE
            count["passed" if good else "failed"] += 1
            print(f"super-gradients YOLOX {overlap}{' with L1' if l1 else ''}, {name}: loss "
                  f"{want[0]:.6f}, largest relative distance of loss, parts, gradient "
                  + ", ".join(f"{d:.1e}" for d in off) + ("" if good else ": FAILED"))
    print(", ".join(f"{n} {word}" for word, n in count.items()))
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
