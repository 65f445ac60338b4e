# SPDX-License-Identifier: Apache-2.0
"""What a promised accuracy costs: octet quantize --max-drop for each network and target.

usage: promise.py OCTET [--networks N,..] [--targets T,..] [--max-drop D] [--limit N] [--threads N]
                  [--json FILE]

A row is one search: AP of the float network, of INT8 as the settings have it, of INT8 under the promise, the
layers that are float for it, the share of multiply-adds left in integers before and after, networks that
were measured, and how much longer a picture takes in octet than without the promise (both files in turns).
The scored pictures choose the layers here: the table shows that promises are kept, not how a network does on
others. Exit status 1: a promise is not kept.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import pictures
from program import Octet

NETWORKS = ["yolov8n", "yolox_nano_416", "nanodet_m_416", "picodet_s_416", "yolo_nas_bccd_train"]
TARGETS = ["octet", "ort", "openvino", "tensorrt", "npu-pow2"]
COLUMNS = ["network", "target", "float", "int8", "promised", "restored", "integer", "then", "scores",
           "time"]


def slower(octet, plain, kept):
    """Time of the second file over that of the first."""
    models = octet.run("bench", plain, kept, "--seconds", "3").json["models"]
    return models[1]["median_ms"] / models[0]["median_ms"]


def row_of(octet, task, target, args, work):
    plain, kept = work / "plain.onnx", work / "kept.onnx"
    for old in (plain, kept):
        old.unlink(missing_ok=True)
    data = ["--target", target, "--images", task.calibration]
    octet.run("quantize", task.network.file, "-o", plain, *data)
    made = octet.run("quantize", task.network.file, "-o", kept, *data, "--annotations",
                     task.annotations, "--eval-images", task.folder, "--max-drop",
                     args.max_drop).json
    promise, steps = made["promise"], made["promise"]["steps"]
    row = {"network": task.network.name, "target": target, "float": promise["float"],
           "int8": promise["first"], "promised": promise["score"], "restored": promise["restored"],
           "layers": promise["layers"], "integer": steps[0]["macs_quantized_share"],
           "then": made["macs_quantized_share"], "scores": promise["scores"],
           "seconds": promise["seconds"], "time": 1.0}
    if promise["restored"]:
        row["time"] = slower(octet, plain, kept)
    return row


def text(value):
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("octet")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--max-drop", default="0.002")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--threads", default="0")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows, missed = [], 0
    print(" | ".join(COLUMNS), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        octet = Octet(args.octet, args.threads)
        for name in args.networks.split(","):
            task = pictures.prepare(name, Path(folder), args.limit, False)
            for target in args.targets.split(","):
                try:
                    row = row_of(octet, task, target, args, Path(folder))
                except RuntimeError as error:
                    missed += 1
                    print(f"{name} | {target} | {error}", flush=True)
                    continue
                rows.append(row)
                print(" | ".join(text(row[c]) for c in COLUMNS), flush=True)
                if args.json:
                    args.json.write_text(json.dumps(rows, indent=1))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
