# SPDX-License-Identifier: Apache-2.0
"""The labelled pictures that accuracy is measured on, and those for calibration."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

import boxes
import peers

N_CALIBRATION = 128
N_CALIBRATION_TOP1 = 100


@dataclass
class Task:
    """One network with its pictures. Made by `prepare`, in a folder for files that it needs."""
    network: peers.Network
    decode: object  # None: a classifier
    folder: Path  # of the scored pictures
    calibration: Path  # a folder of pictures
    annotations: Path  # of the scored pictures
    names: list = field(default_factory=list)  # of the scored pictures
    ids: list = field(default_factory=list)  # their image ids, or classes
    categories: list = field(default_factory=list)  # ids

    @property
    def metric(self):
        return "ap" if self.decode else "top1"


DECODERS = {"yolov8n": boxes.yolov8, "yolox_nano_416": boxes.yolox, "picodet_s_416": boxes.picodet,
            "nanodet_m_416": boxes.nanodet, "yolo_nas_bccd_train": boxes.yolo_nas,
            "mobilenet_v1_0.25_224": None}


def link(target, source, names):
    """A folder of links to some of the pictures of another."""
    target.mkdir()
    for name in names:
        (target / name).symlink_to(source / name)
    return target


def lines(path):
    return path.read_text().split("\n")[:-1]


def joined(sources):
    """The labels of several files, which number their pictures each for itself."""
    every = {"images": [], "annotations": []}
    for source in sources:
        labels = json.loads(source.read_text())
        past = {k: max((x["id"] for x in every[k]), default=0) + 1 for k in every}
        for image in labels["images"]:
            every["images"].append({**image, "id": image["id"] + past["images"]})
        for box in labels["annotations"]:
            every["annotations"].append({**box, "id": box["id"] + past["annotations"],
                                         "image_id": box["image_id"] + past["images"]})
        every["categories"] = labels["categories"]
    return every


def labelled(task, labels, limit):
    """Labels of the first pictures only, as a file of its own."""
    images = labels["images"][:limit]
    task.names = [i["file_name"] for i in images]
    task.ids = [i["id"] for i in images]
    task.categories = [c["id"] for c in labels["categories"]]
    wanted = set(task.ids)
    labels["images"] = images
    labels["annotations"] = [a for a in labels["annotations"] if a["image_id"] in wanted]
    task.annotations.write_text(json.dumps(labels))


def prepare_coco(task, work, limit, all_labels):
    parts = ["val320", "calib128"] if all_labels else ["val320"]
    labelled(task, joined(peers.DATA / f"coco/instances_{part}.json" for part in parts), limit)
    if all_labels:
        task.folder = work / "pictures"
        task.folder.mkdir()
        for source in (peers.DATA / task.network.images, task.calibration):
            for path in source.iterdir():
                (task.folder / path.name).symlink_to(path)


def prepare_bccd(task, work, limit, all_labels):
    parts = ["val", "train"] if all_labels else ["val"]
    labelled(task, joined(peers.DATA / f"yolo-nas/bccd_{part}.json" for part in parts), limit)
    names = lines(peers.DATA / "yolo-nas/train.txt")[:N_CALIBRATION]
    link(task.calibration, task.folder, names)


def prepare_imagenet(task, work, limit, all_labels):
    """The list is sorted by classes: calibration takes pictures from all over it."""
    labels = lines(peers.DATA / "imagenet/labels.txt")
    step = len(labels) // N_CALIBRATION_TOP1
    link(task.calibration, task.folder, [line.split()[0] for line in labels[::step]])
    scored = [line for i, line in enumerate(labels) if i % step][:limit]
    task.annotations.write_text("\n".join(scored) + "\n")
    task.names, classes = zip(*(line.split() for line in scored))
    task.ids = [int(c) for c in classes]


def prepare(name, work, limit, all_labels=False):
    """The task of a network; `limit` pictures at most. all_labels: training pictures too."""
    network = peers.by_name(name)
    work = work / network.name
    work.mkdir()
    task = Task(network, DECODERS[network.name], folder=peers.DATA / network.images,
                calibration=work / "calibration", annotations=work / "labels.json")
    kind = network.images.split("/")[0]
    if kind == "coco":
        task.calibration = peers.DATA / "coco/calib"
    {"coco": prepare_coco, "bccd": prepare_bccd, "imagenet": prepare_imagenet}[kind](
        task, work, limit, all_labels)
    return task


class Inputs:
    """Fitted pictures as bytes, in a file, so that every runtime and target reads them again."""

    def __init__(self, task, cache):
        self.prepare = task.network.prepare
        size = self.prepare.size
        kind = task.network.images.replace("/", "_")
        path = cache / f"{kind}_{self.prepare.fit}_{size}_{len(task.names)}.npy"
        self.sizes = [Image.open(task.folder / name).size for name in task.names]
        if not path.exists():
            pixels = np.lib.format.open_memmap(path, "w+", np.uint8,
                                               (len(task.names), size, size, 3))
            for i, name in enumerate(task.names):
                pixels[i] = self.prepare.pixels(Image.open(task.folder / name).convert("RGB"))
        self.pixels = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        return self.prepare.numbers(self.pixels[i])
