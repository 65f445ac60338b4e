# SPDX-License-Identifier: Apache-2.0
"""What INT8 costs: AP (top-1) of each network quantized for each target, against the float file.

usage: accuracy.py OCTET [--networks N,..] [--targets T,..] [--limit N] [--quick] [--speed]
                   [--in-float] [--all-labels] [--nncf] [--threads N] [--cache DIR] [--json FILE]
                   [--figures FILE]

A row is one `octet quantize` with default settings, calibrated on pictures that are not scored.
float: octet on the float file. sim: octet on the float file with the qmap. f32: the same with sums
in float (--in-float), for comparison. octet, ORT, OpenVINO: the exported file in these runtimes
(OpenVINO: only the file made for it). drop: float - ORT, which must not exceed the limit; sim,
octet and ORT must agree, and OpenVINO with octet. The row `float` holds ONNX Runtime with this
script's own reading of outputs against octet. --all-labels: YOLO-NAS on all 364 labelled pictures,
most of which it was trained on, instead of 72, detectors of COCO on all 448, the calibration pictures
among them: how well runtimes agree is no question of new pictures, and many answer it better; drops
are not judged then. --quick: 40 pictures, targets octet and ort; with --quick or --limit the limits
are not checked. --figures: writes the figures the pages quote, unless fewer or other pictures were
scored. Exit status 1: missed.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import bench_quantize
import figures
import peers
import pictures
import runtimes
from program import Octet

NETWORKS = list(pictures.DECODERS)
TARGETS = ["octet", "ort", "openvino", "tensorrt", "npu-pow2", "npu-pow2-pc"]
# How much accuracy the file may lose in ONNX Runtime.
LIMITS = {
    "octet": {"yolov8n": .005, "yolox_nano_416": .007, "picodet_s_416": .004,
              "nanodet_m_416": .004, "yolo_nas_bccd_train": .004, "mobilenet_v1_0.25_224": .02},
    "ort": {"yolov8n": .006, "yolox_nano_416": .012, "picodet_s_416": .012,
            "nanodet_m_416": .006, "yolo_nas_bccd_train": .005},
    "openvino": {"yolov8n": .008, "yolo_nas_bccd_train": .008},
    "tensorrt": {"yolov8n": .008, "yolo_nas_bccd_train": .008},
    "npu-pow2": {"yolov8n": .020, "yolo_nas_bccd_train": .006},
    "npu-pow2-pc": {"yolox_nano_416": .015, "picodet_s_416": .006, "nanodet_m_416": .010},
}
AGREEMENT = .002  # between sim, octet and ORT
OPENVINO_AGREEMENT = .005  # between OpenVINO and octet
FLOAT_AGREEMENT = .001  # between octet and ONNX Runtime on the float file
FASTER = {"yolov8n": 2.5}  # than float in ONNX Runtime, for target ort; others: 1
# The float file to be faster than has its branches merged already.
SPEED_BASE = {"yolo_nas_bccd_train": "yolo_nas_bccd_folded"}
QUICK_IMAGES = 40
QUICK_TARGETS = ["octet", "ort"]
FIGURES = ["sim", "f32", "octet", "ort", "openvino"]


def attempt(row, key, work):
    """row[key], or a complaint that names it."""
    try:
        row[key] = work()
    except (Exception, SystemExit) as error:  # each runtime has its own kinds
        row.setdefault("errors", []).append(f"{key}: {error}")


class Bench:
    """One network after the other, with all targets."""

    def __init__(self, args, work):
        self.args, self.work = args, work
        self.octet = Octet(args.octet, args.threads)
        self.cache = args.cache or work / "cache"
        self.cache.mkdir(parents=True, exist_ok=True)

    def start(self, name):
        self.task = pictures.prepare(name, self.work, self.args.limit, self.args.all_labels)
        self.inputs = pictures.Inputs(self.task, self.cache)
        self.float, _ = self.octet.eval(self.task.network.file, self.task)

    def in_runtime(self, path, runtime):
        return runtimes.accuracy(path, runtime, self.args.threads, self.task, self.inputs,
                                 self.octet, self.work)

    def float_row(self):
        row = {"network": self.task.network.name, "target": "float", "float": self.float}
        attempt(row, "ort", lambda: self.in_runtime(self.task.network.file, "onnxruntime"))
        return row

    def target_row(self, target):
        task = self.task
        out, qmap = self.work / "out.onnx", self.work / "qmap.json"
        row = {"network": task.network.name, "target": target, "float": self.float}
        for old in (out, qmap):
            old.unlink(missing_ok=True)
        attempt(row, "quantize", lambda: self.quantize(out, qmap, target))
        if "quantize" not in row:
            return row
        attempt(row, "sim", lambda: self.octet.eval(task.network.file, task, qmap)[0])
        if self.args.in_float:
            attempt(row, "f32", lambda: self.octet.eval(task.network.file, task, qmap, True)[0])
        attempt(row, "octet", lambda: self.octet.eval(out, task)[0])
        attempt(row, "ort", lambda: self.in_runtime(out, "onnxruntime"))
        if target == "openvino":
            attempt(row, "openvino", lambda: self.in_runtime(out, "openvino"))
        if target == "ort" and self.args.speed:
            attempt(row, "speed", lambda: self.speed(out))
        return row

    def quantize(self, out, qmap, target):
        model = self.task.network.file
        run = self.octet.quantize(model, out, self.task.calibration, target, qmap)
        return {"seconds": run.seconds, "peak_mb": run.peak_mb,
                "size_ratio": model.stat().st_size / out.stat().st_size, "report": run.json}

    def speed(self, out):
        name = self.task.network.name
        base = runtimes.without_weights_as_inputs(
            peers.by_name(SPEED_BASE.get(name, name)).file, self.work / "base.onnx")
        ms = runtimes.latency({"float": base, "int8": out}, self.args.threads)
        integer, floating = runtimes.convolutions(out, self.work)
        return {"float_ms": ms["float"], "int8_ms": ms["int8"], "integer_convolutions": integer,
                "float_convolutions": floating}


def judge(row, limits):
    """What a row misses, in words; `drop` and `limit` are added to it."""
    missed = ["failed"] if "errors" in row else []
    if "ort" in row:
        row["drop"] = row["float"] - row["ort"]
    if row["target"] == "float":
        row["limit"] = FLOAT_AGREEMENT
        return missed + ["drop"] * (abs(row.get("drop", 0)) > FLOAT_AGREEMENT)
    row["limit"] = limits[row["target"]].get(row["network"]) if limits else None
    if row["limit"] is not None and row.get("drop", 0) > row["limit"]:
        missed.append("drop")
    alike = [row[k] for k in ("sim", "octet", "ort") if k in row]
    if alike and max(alike) - min(alike) > AGREEMENT:
        missed.append("agreement")
    if {"openvino", "octet"} <= row.keys():
        if abs(row["openvino"] - row["octet"]) > OPENVINO_AGREEMENT:
            missed.append("OpenVINO")
    if "speed" in row:
        faster = row["speed"]["float_ms"] / row["speed"]["int8_ms"]
        if faster < FASTER.get(row["network"], 1):
            missed.append("speed")
    return missed


def number(value, form):
    return "-" if value is None else format(value, form)


HEAD = ["network", "target", "float", "sim", "f32", "octet", "ORT", "OpenVINO", "drop", "limit",
        "size", "s", "MB", ""]
WIDTHS = [22, 12, 8, 8, 8, 8, 8, 9, 9, 7, 7, 7, 6]


def print_cells(cells):
    text = "".join(c.ljust(w) if i < 2 else c.rjust(w)
                   for i, (c, w) in enumerate(zip(cells, WIDTHS)))
    print(f"{text}  {cells[-1]}".rstrip(), flush=True)


def verdict(row, checked):
    if not checked:
        return "failed" if "errors" in row else ""
    if row["missed"]:
        return "MISSED " + ", ".join(row["missed"])
    return "ok" if row["limit"] is not None else "ok (no limit)"


def print_row(row, checked):
    made = row.get("quantize", {})
    print_cells([
        row["network"], row["target"], number(row["float"], ".4f"),
        *(number(row.get(k), ".4f") for k in FIGURES), number(row.get("drop"), "+.4f"),
        number(row["limit"], ".3f"), number(made.get("size_ratio"), ".2f"),
        number(made.get("seconds"), ".1f"), number(made.get("peak_mb"), ".0f"),
        verdict(row, checked)])
    for error in row.get("errors", []):
        print(f"    {error}")


def print_speed(rows):
    rows = [r for r in rows if "speed" in r]
    if rows:
        print(f"\n{'in ONNX Runtime, target ort':28s}{'float ms':>10s}{'int8 ms':>10s}"
              f"{'faster':>9s}{'at least':>10s}{'integer, float convolutions':>30s}")
    for row in rows:
        s = row["speed"]
        print(f"{row['network']:28s}{s['float_ms']:10.2f}{s['int8_ms']:10.2f}"
              f"{s['float_ms'] / s['int8_ms']:8.2f}x{FASTER.get(row['network'], 1):9.1f}x"
              f"{s['integer_convolutions']:26d},{s['float_convolutions']:3d}")


def print_means(rows):
    """Over all networks, since single differences below .003 are noise."""
    for target in TARGETS:
        drops = [r["drop"] for r in rows if r["target"] == target and "drop" in r]
        if len(drops) > 1:
            print(f"target {target}: mean drop of {len(drops)} networks "
                  f"{statistics.fmean(drops):+.4f}, worst {max(drops):+.4f}")


def names(text, known):
    """Names with commas; of networks their beginning will do."""
    found = []
    for word in text.split(","):
        matches = [k for k in known if k == word] or [k for k in known if k.startswith(word)]
        if len(matches) != 1:
            raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(known)}")
        found += matches
    return found


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("--networks", type=lambda t: names(t, NETWORKS), default=NETWORKS)
    parser.add_argument("--targets", type=lambda t: names(t, ["float"] + TARGETS))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--in-float", action="store_true")
    parser.add_argument("--all-labels", action="store_true")
    parser.add_argument("--nncf", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figures", type=Path)
    args = parser.parse_args()
    if args.quick:
        args.limit = args.limit or QUICK_IMAGES
    args.targets = args.targets or (QUICK_TARGETS if args.quick else TARGETS)
    return args


def measure(args, work):
    """All rows, printed as they come."""
    bench, rows, checked = Bench(args, work), [], args.limit is None
    print_cells(HEAD)
    for name in args.networks:
        bench.start(name)
        todo = [bench.float_row] + [lambda t=t: bench.target_row(t) for t in args.targets
                                    if t != "float"]
        for make in todo:
            row = make()
            row["missed"] = judge(row, None if args.all_labels else LIMITS)
            rows.append(row)
            print_row(row, checked)
    return rows


def write_figures(args, rows):
    """float/NETWORK and TARGET/NETWORK/RUNTIME: see tools/figures."""
    if not args.figures or args.limit is not None or args.all_labels:
        return
    values = {}
    for row in rows:
        if row["target"] == "float":
            values[f"float/{row['network']}"] = row["float"]
            continue
        for runtime in ("octet", "ort", "openvino"):
            if runtime in row:
                values[f"{row['target']}/{row['network']}/{runtime}"] = row[runtime]
    figures.update(args.figures, values, figures.machine(args.octet, args.threads),
                   "make accuracy; 128 calibration pictures, 320 scored (yolo_nas: 72; "
                   "mobilenet: 100 and 400)")


def main():
    args = parse()
    peers.need_shared("accuracy")
    with tempfile.TemporaryDirectory() as work:
        try:
            rows = measure(args, Path(work))
        except RuntimeError as error:
            sys.exit(f"accuracy: {error}")
        print()
        print_means(rows)
        print_speed(rows)
        result = {"threads": args.threads, "images": args.limit, "rows": rows}
        if args.nncf:
            print()
            result["nncf"] = bench_quantize.compare(Octet(args.octet, args.threads), Path(work))
    n_missed = sum(bool(r["missed"]) for r in rows) if args.limit is None else 0
    n_failed = sum("errors" in r for r in rows)
    if args.limit is None:
        print(f"{len(rows)} rows, {n_missed} missed")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    write_figures(args, rows)
    return 1 if n_missed or n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
