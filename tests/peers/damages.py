# SPDX-License-Identifier: Apache-2.0
"""What quantization makes of damaged networks: copies that compute the same in float.

usage: damages.py OCTET DAMAGE_MODEL [--networks N,..] [--targets T,..] [--damages D,..] [--where W] [--count N]
                  [--settings TEXT]..

DAMAGE_MODEL is tests/damage_model of a build. `own`: AP against the float network's own detections above a
score of .3, on pictures that calibration did not see: a column for each of --settings.
"""

import argparse
import json
import shlex
import subprocess
import tempfile
from pathlib import Path

import peers
from agreement import as_labels, in_one_list, labels_in_one_list, of_images
from program import Octet

DEMO = peers.ROOT / "examples/demo/detector.onnx"
SETTINGS = ["--heal off", "--heal on"]


class Case:
    """A network, half of its pictures to calibrate on, and its own detections in the others."""

    def __init__(self, name, octet, work, count):
        self.work = work / name
        self.work.mkdir()
        self.octet = octet
        if name == "demo":
            octet.run("synth", "--out", self.work, "--count", 2 * count)
            self.network, self.folder, source = DEMO, self.work / "val", self.work / "val.json"
        else:
            self.network = peers.by_name(name).file
            self.folder = peers.DATA / "coco/calib"
            source = peers.DATA / "coco/instances_calib128.json"
        self.labels = self.work / "labels.json"
        labels = json.loads(source.read_text())
        files = sorted(i["file_name"] for i in labels["images"])[:2 * count]
        half = set(files[1::2])
        self.calibration = self.work / "calibrate.txt"
        self.calibration.write_text("".join(f"{self.folder / f}\n" for f in files[::2]))
        self.labels.write_text(json.dumps(of_images(labels, half, labels["annotations"])))
        own = as_labels(self.detect(self.network))
        self.own = self.work / "own.json"
        self.own.write_text(json.dumps(labels_in_one_list(of_images(labels, half, own))))

    def detect(self, network):
        found = self.work / "found.json"
        found.unlink(missing_ok=True)
        self.octet.run("eval", network, "--images", self.folder, "--annotations", self.labels,
                       "--results", found)
        return json.loads(found.read_text())

    def score(self, network):
        listed = self.work / "list.json"
        listed.write_text(json.dumps(in_one_list(self.detect(network))))
        return self.octet.run("score", "--annotations", self.own, "--results", listed).json["ap"]

    def measure(self, network, target, settings):
        out = self.work / "out.onnx"
        made = self.octet.run("quantize", network, "-o", out, "--images", self.calibration, "--target",
                              target, "--quant-cfg", "none", "--force", *shlex.split(settings)).json
        return self.score(out), made.get("mends", [])


def kinds(program):
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[0] for line in lines]


def words(text):
    return text.split(",")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("damage_model")
    parser.add_argument("--networks", type=words, default=["demo", "yolox_nano_416"])
    parser.add_argument("--targets", type=words, default=["octet"])
    parser.add_argument("--damages", type=words)
    parser.add_argument("--where", default=".4")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--settings", action="append")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def table(args, case, name):
    settings = args.settings or SETTINGS
    damaged = case.work / "damaged.onnx"
    for target in args.targets:
        for kind in ["none", *(args.damages or kinds(args.damage_model))]:
            network = case.network if kind == "none" else damaged
            if kind != "none":
                subprocess.run([args.damage_model, case.network, kind, args.where, damaged], check=True)
            found = [case.measure(network, target, s) for s in settings]
            same = case.score(network) if kind != "none" else 1
            print(f"{name:16s}{target:12s}{kind:18s}{same:7.3f}",
                  "".join(f"{own:8.3f}" for own, _ in found), flush=True)
            for mend in found[-1][1]:
                print(f"      {mend}")


def main():
    args = parse()
    peers.need_shared("damages")
    with tempfile.TemporaryDirectory() as work:
        for name in args.networks:
            table(args, Case(name, Octet(args.octet, args.threads), Path(work), args.count), name)


if __name__ == "__main__":
    main()
