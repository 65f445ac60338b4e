# SPDX-License-Identifier: Apache-2.0
"""Holds octet's losses of detectors against the projects' own code: ultralytics, super-gradients.

usage: check_losses.py LOSS_VALUES

LOSS_VALUES is the build's tests/loss_values. Both compute in float64 at the same random predictions:
the loss, its parts and its gradients. A project that is not installed is skipped. Ends with
`N passed, N failed, N skipped`.
"""

import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np

STRIDES = (8, 16, 32)
TOLERANCE = 1e-9  # of float64; super-gradients' ATSS rounds its scores to float32
FLOAT32_TOLERANCE = 1e-6


@dataclass
class Batch:
    """Predictions and labels of some pictures."""
    size: int
    cls: np.ndarray  # [pictures, anchors, classes] logits
    reg: np.ndarray  # [pictures, anchors, 4 * bins]
    labels: np.ndarray  # [pictures, boxes, 5]: class, corners; class -1: no box

    def boxes(self):
        """Rows picture, class, corners."""
        return np.array([(i, *row) for i, rows in enumerate(self.labels) for row in rows
                         if row[0] >= 0]).reshape(-1, 6)

    def centred(self):
        """Rows picture, class, centre, size."""
        b = self.boxes()
        return np.concatenate([b[:, :2], (b[:, 2:4] + b[:, 4:]) / 2, b[:, 4:] - b[:, 2:4]], 1)


def make_batch(seed, n_boxes, size=160, n_classes=5, bins=17):
    """Boxes from tiny to large; the distributions have a bump, as those of trained networks have."""
    rng = np.random.default_rng(seed)
    anchors = sum((size // s) ** 2 for s in STRIDES)
    labels = np.full((len(n_boxes), max(max(n_boxes), 1), 5), -1.0)
    for i, n in enumerate(n_boxes):
        for j in range(n):
            w, h = size * np.exp(rng.uniform(-4, -.3, 2))
            x, y = rng.uniform(0, 1, 2) * (size - w, size - h)
            labels[i, j] = rng.integers(n_classes), x, y, x + w, y + h
    mean = rng.uniform(.3, 6, (len(n_boxes), anchors, 4, 1))
    reg = -(np.arange(bins) - mean) ** 2 / 3 + rng.normal(0, .5, (len(n_boxes), anchors, 4, bins))
    cls = rng.normal(-2, 1.5, (len(n_boxes), anchors, n_classes))
    # Labels are float32 in octet.
    return Batch(size, cls, reg.reshape(*reg.shape[:2], -1),
                 labels.astype(np.float32).astype(np.float64))


def octet(program, operator, batch, **attributes):
    """loss, parts and gradients of octet's operator."""
    sizes = [batch.size // s for s in STRIDES for _ in range(2)]
    words = {"strides": STRIDES, "sizes": sizes, **attributes}
    text = [f"{k}={','.join(map(str, v)) if isinstance(v, (list, tuple)) else v}"
            for k, v in words.items()]
    with tempfile.TemporaryDirectory() as folder:
        for i, a in enumerate((batch.cls, batch.reg, batch.labels.astype(np.float32))):
            np.save(Path(folder) / f"{i}.npy", a)
        subprocess.run([program, operator, folder, *text], check=True)
        return [np.load(Path(folder) / f"{k}.npy") for k in ("loss", "parts", "grad0", "grad1")]


def anchors_of(size):
    """Points in pixels [n, 2], strides [n, 1]."""
    points, strides = [], []
    for s in STRIDES:
        at = (np.arange(size // s) + .5) * s
        points.append(np.stack(np.meshgrid(at, at), -1).reshape(-1, 2))
        strides.append(np.full((len(points[-1]), 1), s))
    return np.concatenate(points), np.concatenate(strides).astype(np.float64)


def leaves(batch, torch):
    """The predictions as variables."""
    return [torch.tensor(a, requires_grad=True) for a in (batch.cls, batch.reg)]


# --- ultralytics ---

def ultralytics_loss(batch):
    import torch
    from ultralytics.utils.loss import v8DetectionLoss

    torch.set_default_dtype(torch.float64)
    cls, reg = leaves(batch, torch)
    n_classes, bins = cls.shape[2], reg.shape[2] // 4
    head = types.SimpleNamespace(stride=torch.tensor(STRIDES, dtype=torch.float64), nc=n_classes,
                                 reg_max=bins)
    model = types.SimpleNamespace(parameters=lambda: iter([cls]), model=[head],
                                  args=types.SimpleNamespace(box=7.5, cls=.5, dfl=1.5))
    rows = torch.tensor(batch.centred())
    feats = [torch.zeros(1, 1, batch.size // s, batch.size // s) for s in STRIDES]
    loss, _ = v8DetectionLoss(model)(
        {"boxes": reg.permute(0, 2, 1), "scores": cls.permute(0, 2, 1), "feats": feats},
        {"batch_idx": rows[:, 0], "cls": rows[:, 1], "bboxes": rows[:, 2:] / batch.size})
    loss.sum().backward()
    return [loss.sum().item(), loss.detach().numpy(), cls.grad.numpy(), reg.grad.numpy()]


# --- super-gradients ---

def super_gradients_module():
    """The file of the loss alone: the package itself wants dependencies of years ago."""
    import torch

    def corners(b, image_shape=None):
        low = b[..., :2] - .5 * b[..., 2:]
        return torch.cat([low, low + b[..., 2:]], -1)

    def distances_to_boxes(points, distances):
        return torch.cat([points - distances[..., :2], points + distances[..., 2:]], -1)

    def stub(name, **members):
        module = types.ModuleType(name)
        module.__path__ = []
        module.__dict__.update(members)
        sys.modules[name] = module

    path = importlib.metadata.distribution("super-gradients").locate_file(
        "super_gradients/training/losses/ppyolo_loss.py")
    stub("super_gradients", is_distributed=lambda: False)
    for name in ("common", "common.environment", "common.registry", "training", "training.utils",
                 "training.datasets", "training.datasets.data_formats",
                 "training.datasets.data_formats.bbox_formats"):
        stub(f"super_gradients.{name}")
    stub("super_gradients.common.environment.ddp_utils", get_world_size=lambda: 1)
    stub("super_gradients.common.object_names",
         Losses=types.SimpleNamespace(PPYOLOE_LOSS=""))
    stub("super_gradients.common.registry.registry", register_loss=lambda **_: lambda c: c)
    stub("super_gradients.training.datasets.data_formats.bbox_formats.cxcywh",
         cxcywh_to_xyxy=corners)
    stub("super_gradients.training.utils.bbox_utils", batch_distance2bbox=distances_to_boxes)
    spec = importlib.util.spec_from_file_location("ppyolo_loss", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def super_gradients_loss(batch, assigner, classification):
    import torch

    torch.set_default_dtype(torch.float64)
    cls, reg = leaves(batch, torch)
    points, strides = anchors_of(batch.size)
    squares = np.concatenate([points - 2.5 * strides, points + 2.5 * strides], 1)
    loss = super_gradients_module().PPYoloELoss(
        num_classes=cls.shape[2], use_varifocal_loss=classification == "varifocal",
        use_static_assigner=assigner == "atss")
    total, parts = loss(
        (cls, reg, torch.tensor(squares), torch.tensor(points),
         [(batch.size // s) ** 2 for s in STRIDES], torch.tensor(strides)),
        torch.tensor(batch.centred()))
    total.backward()
    reg_grad = np.zeros(reg.shape) if reg.grad is None else reg.grad.numpy()
    return [total.item(), parts.numpy()[:3], cls.grad.numpy(), reg_grad]


# --- the comparison ---

BATCHES = ((8, 3, 20), (5, 0, 12, 1), (0, 0), (40,), (1, 1))


def cases():
    for seed, n_boxes in enumerate(BATCHES):
        yield (f"ultralytics YOLOv8, boxes {n_boxes}", "ultralytics", "YoloV8Loss",
               make_batch(seed, n_boxes, bins=16), {}, TOLERANCE)
        for assigner in "tal", "atss":
            for classification in "varifocal", "focal":
                # ATSS needs 9 cells in each level.
                yield (f"super-gradients {assigner} {classification}, boxes {n_boxes}",
                       "super-gradients", "YoloNasLoss", make_batch(100 + seed, n_boxes),
                       {"assigner": assigner, "classification": classification},
                       FLOAT32_TOLERANCE if assigner == "atss" else TOLERANCE)


def distance(have, want):
    have, want = np.asarray(have), np.asarray(want)
    return np.abs(have - want).max() / max(np.abs(want).max(), 1e-3)


def installed(package):
    try:
        importlib.metadata.version("torch")
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def main():
    program = sys.argv[1]
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for name, package, operator, batch, attributes, tolerance in cases():
        if not installed(package):
            print(f"{name}: skipped: {package} or torch is not installed")
            count["skipped"] += 1
            continue
        want = (ultralytics_loss(batch) if package == "ultralytics" else
                super_gradients_loss(batch, **attributes))
        have = octet(program, operator, batch, **attributes)
        off = [distance(h, w) for h, w in zip(have, want)]
        good = max(off) <= tolerance
        count["passed" if good else "failed"] += 1
        print(f"{name}: loss {want[0]:.6f}, largest relative distance of loss, parts, gradients "
              + ", ".join(f"{d:.1e}" for d in off) + ("" if good else ": FAILED"))
    print(", ".join(f"{n} {word}" for word, n in count.items()))
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
