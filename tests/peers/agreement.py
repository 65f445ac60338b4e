# SPDX-License-Identifier: Apache-2.0
"""How well INT8 repeats the float network on pictures that no figure is taken from: tells settings apart.

usage: agreement.py OCTET [OTHER..] [--networks N,..] [--targets T,..] [--threads N] [--json FILE]

OTHER: builds of octet with another setting each. The labelled pictures of the tables (COCO's 320, BCCD's 72)
are not touched. COCO's 128 calibration pictures (BCCD's 292 training pictures) are halved by every second
name; each half is scored once, by a network calibrated on the other one. `own`: AP against the float
network's own detections above a score of .3, 1 is no difference, all boxes in one list: the mean over
classes, `classes`, hangs on those that have one or two boxes. `AP`: against the labels.

A build is said to differ from the first if its mean over networks is better, or worse, in both folds, and
by more than twice the standard error of the differences; else the difference is chance.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import peers
from accuracy import TARGETS, names
from program import Octet

NETWORKS = ["yolov8n", "yolox_nano_416", "picodet_s_416", "nanodet_m_416", "yolo_nas_bccd_train"]
FOLDS = (0, 1)
MANY = 1000  # more than there are classes
SURE = .3  # the score from which a float detection is taken as true


def unscored(network):
    """Folder and labels of the pictures, none of which `make accuracy` scores."""
    if network.images.startswith("bccd"):
        return peers.DATA / network.images, peers.DATA / "yolo-nas/bccd_train.json"
    return peers.DATA / "coco/calib", peers.DATA / "coco/instances_calib128.json"


def of_images(labels, files, annotations):
    """The labels of these pictures alone."""
    images = [i for i in labels["images"] if i["file_name"] in files]
    wanted = {i["id"] for i in images}
    return {**labels, "images": images,
            "annotations": [a for a in annotations if a["image_id"] in wanted]}


def as_labels(detections):
    sure = [d for d in detections if d["score"] > SURE]
    return [{"id": i, "image_id": d["image_id"], "category_id": d["category_id"],
             "bbox": d["bbox"], "area": d["bbox"][2] * d["bbox"][3], "iscrowd": 0}
            for i, d in enumerate(sure, 1)]


def in_one_list(boxes):
    """One class, and for each of the former ones a picture of its own: boxes are matched as before."""
    return [{**b, "image_id": b["image_id"] * MANY + b["category_id"], "category_id": 1}
            for b in boxes]


def labels_in_one_list(labels):
    images = [{**i, "id": i["id"] * MANY + c["id"], "file_name": f"{c['id']} {i['file_name']}"}
              for i in labels["images"] for c in labels["categories"]]
    return {"images": images, "annotations": in_one_list(labels["annotations"]),
            "categories": [{"id": 1, "name": "any"}]}


class Halves:
    """One network with both folds: a list to calibrate on, and two kinds of labels to score by."""

    def __init__(self, name, octet, work):
        self.network = peers.by_name(name)
        self.folder, source = unscored(self.network)
        self.work = work / name
        self.work.mkdir()
        labels = json.loads(source.read_text())
        files = sorted(i["file_name"] for i in labels["images"])
        found = self.work / "float.json"
        octet.run("eval", self.network.file, "--images", self.folder, "--annotations", source,
                  "--results", found)
        own = as_labels(json.loads(found.read_text()))
        for fold in FOLDS:
            half = set(files[fold::2])
            self.write(f"labels{fold}", of_images(labels, half, labels["annotations"]))
            self.write(f"classes{fold}", of_images(labels, half, own))
            self.write(f"own{fold}", labels_in_one_list(of_images(labels, half, own)))
            self.calibration(fold).write_text(
                "".join(f"{self.folder / f}\n" for f in files if f not in half))

    def write(self, name, labels):
        self.file(name).write_text(json.dumps(labels))

    def file(self, name):
        return self.work / f"{name}.json"

    def calibration(self, fold):
        return self.work / f"calibrate{fold}.txt"

    def measure(self, octet, target, fold):
        out, found = self.work / "out.onnx", self.file("found")
        for old in (out, found):
            old.unlink(missing_ok=True)
        made = octet.quantize(self.network.file, out, self.calibration(fold), target).json
        octet.run("eval", out, "--images", self.folder, "--annotations",
                  self.file(f"labels{fold}"), "--results", found)
        self.write("list", in_one_list(json.loads(found.read_text())))
        return {"network": self.network.name, "target": target, "fold": fold,
                "own": self.score(octet, f"own{fold}", "list"),
                "classes": self.score(octet, f"classes{fold}", "found"),
                "ap": self.score(octet, f"labels{fold}", "found"),
                "macs_quantized_share": made["macs_quantized_share"]}

    def score(self, octet, labels, found):
        return octet.run("score", "--annotations", self.file(labels), "--results",
                         self.file(found)).json["ap"]


def verdict(differences):
    """Of own: by network and fold."""
    folds = [statistics.fmean(d[fold] for d in differences) for fold in FOLDS]
    cells = [d[fold] for d in differences for fold in FOLDS]
    error = statistics.stdev(cells) / len(cells) ** .5
    mean = statistics.fmean(cells)
    clear = folds[0] * folds[1] > 0 and abs(mean) > 2 * error
    said = ("better" if mean > 0 else "worse") if clear else "no difference"
    return f"{folds[0]:+.4f} {folds[1]:+.4f}  mean {mean:+.4f} +- {error:.4f}  {said}"


def compare(rows, programs, targets):
    """Each build against the first, over all networks."""
    for target in targets:
        at = {(r["octet"], r["network"], r["fold"]): r["own"] for r in rows
              if r["target"] == target}
        networks = sorted({n for _, n, _ in at})
        for other in programs[1:]:
            differences = [[at[other, n, f] - at[programs[0], n, f] for f in FOLDS]
                           for n in networks]
            print(f"{target:12s} {other}: {verdict(differences)}")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet", nargs="+")
    parser.add_argument("--networks", type=lambda t: names(t, NETWORKS), default=NETWORKS)
    parser.add_argument("--targets", type=lambda t: names(t, TARGETS), default=["octet", "ort"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def measure(args, work):
    rows = []
    print(f"{'network':22s}{'target':14s}{'fold':>4s}{'own':>9s}{'classes':>9s}{'AP':>9s}"
          f"{'integer':>9s}  octet")
    for name in args.networks:
        halves = Halves(name, Octet(args.octet[0], args.threads), work)
        for target, fold, path in ((t, f, p) for t in args.targets for f in FOLDS
                                   for p in args.octet):
            row = halves.measure(Octet(path, args.threads), target, fold)
            rows.append({**row, "octet": path})
            print(f"{name:22s}{target:14s}{fold:4d}{row['own']:9.4f}{row['classes']:9.4f}"
                  f"{row['ap']:9.4f}{row['macs_quantized_share']:9.3f}  {path}", flush=True)
    return rows


def main():
    args = parse()
    peers.need_shared("agreement")
    with tempfile.TemporaryDirectory() as work:
        try:
            rows = measure(args, Path(work))
        except RuntimeError as error:
            sys.exit(f"agreement: {error}")
    compare(rows, args.octet, args.targets)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
