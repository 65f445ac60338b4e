# SPDX-License-Identifier: Apache-2.0
"""Is the file of `octet qat` the network that was measured? AP of YOLO-NAS on all labelled pictures.

usage: check_qat.py OCTET [FILE...] [--epochs N] [--limit N] [--threads N]

Without files the network is trained for each target in turn. sim: octet with quantized layers in
float on rounded numbers; octet: in integers; ORT: the file in ONNX Runtime. They must agree.
Exit status 1: they do not.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import peers
import pictures
import runtimes
from program import Octet

AGREEMENT = .002
TARGETS = {"octet": ["--target", "octet"], "npu-pow2": ["--target", "npu-pow2"],
           "octet W4": ["--target", "octet", "--weight-bits", "4"]}
NETWORK = "yolo_nas_bccd_train"


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def train(octet, task, words, out, epochs):
    data = peers.DATA / "yolo-nas"
    octet.run("qat", task.network.file, "-o", out, "--images", task.folder, "--annotations",
              data / "bccd_train.json", "--epochs", epochs, *words)


def trained(args, octet, task, work):
    """Names and files, made one by one."""
    for path in args.files:
        yield path.name, path
    for i, (name, words) in enumerate({} if args.files else TARGETS.items()):
        out = work / f"{i}.onnx"
        train(octet, task, words, out, args.epochs)
        yield name, out


def main():
    args = parse()
    peers.need_shared("check_qat")
    octet, missed = Octet(args.octet, args.threads), 0
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        task = pictures.prepare(NETWORK, work, args.limit, all_labels=True)
        inputs = pictures.Inputs(task, work)
        print(f"{'file':24} {'sim':>7} {'octet':>7} {'ORT':>7}", flush=True)
        for name, path in trained(args, octet, task, work):
            aps = [octet.eval(path, task, in_float=True)[0], octet.eval(path, task)[0],
                   runtimes.accuracy(path, "onnxruntime", args.threads, task, inputs, octet, work)]
            bad = max(aps) - min(aps) > AGREEMENT
            missed += bad
            print(f"{name:24} {aps[0]:7.4f} {aps[1]:7.4f} {aps[2]:7.4f}  "
                  f"{'differ' if bad else 'ok'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
