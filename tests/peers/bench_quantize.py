# SPDX-License-Identifier: Apache-2.0
"""Measures `octet quantize` and NNCF side by side: yolov8n, the same 128 pictures.

usage: bench_quantize.py OCTET [--threads N] [--rounds N] [--json FILE]

Reading the pictures counts for both, starting Python and loading its modules does not. The float
pass is octet running the same pictures without quantizing (`octet eval`). They take turns. Limits:
time at most 1.5 float passes and half of NNCF's, memory below 250 MB and, with 32, 128 and 1,000
pictures (the same ones again), within 10 MB.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import peers
from program import Octet, measured

NAME = "yolov8n"
CALIBRATION = "coco/calib"
LABELS = "coco/instances_calib128.json"
OF_FLOAT_PASS, OF_NNCF, MEMORY_MB, MEMORY_SPREAD_MB = 1.5, 0.5, 250, 10
COUNTS = [32, 128, 1000]


def picture_files():
    return sorted((peers.DATA / CALIBRATION).glob("*.jpg"))


def worker(out):
    """In its own process: NNCF with its defaults; prints the seconds it took."""
    os.environ["NNCF_CI"] = "1"  # or it calls home
    import nncf
    import onnx
    from PIL import Image
    network = peers.by_name(NAME)

    def read(path):
        return {network.input: network.prepare(Image.open(path).convert("RGB"))}

    start = time.perf_counter()
    model = onnx.load(network.file)
    quantized = nncf.quantize(model, nncf.Dataset(picture_files(), read))
    onnx.save(quantized, out)
    print(json.dumps({"seconds": time.perf_counter() - start}))


def run_nncf(work):
    run = measured([sys.executable, __file__, "--worker", work / "nncf.onnx"])
    # NNCF may print before.
    return json.loads(run.text.strip().split("\n")[-1])["seconds"], run.peak_mb


def run_float(octet):
    run = octet.run("eval", peers.by_name(NAME).file, "--images", peers.DATA / CALIBRATION,
                    "--annotations", peers.DATA / LABELS)
    return run.seconds, run.peak_mb


def run_quantize(octet, work, images=peers.DATA / CALIBRATION, *words):
    run = octet.run("quantize", peers.by_name(NAME).file, "-o", work / "octet.onnx", "--images",
                    images, *words)
    return run.seconds, run.peak_mb


def repeated(work, count):
    """A folder of `count` links to the pictures."""
    folder = work / f"{count}"
    folder.mkdir()
    files = picture_files()
    for i in range(count):
        (folder / f"{i:05}.jpg").symlink_to(files[i % len(files)])
    return folder


def memory_by_count(octet, work):
    return {n: run_quantize(octet, work, repeated(work, n), "--subset-size", n)[1] for n in COUNTS}


def line(text, value, limit, unit):
    word = "ok" if value <= limit else "MISSED"
    print(f"{text:58s}{value:8.2f}{unit:3s} at most {limit:6.2f}{unit:3s} {word}", flush=True)
    return value <= limit


def report(seconds, peaks, by_count):
    """Prints the figures; whether all limits are kept."""
    for tool, s in seconds.items():
        print(f"{tool:24s}{s:9.2f} s {peaks[tool]:8.0f} MB")
    print("octet quantize, " + ", ".join(f"{n} pictures: {mb:.0f} MB"
                                         for n, mb in by_count.items()))
    kept = [
        line("octet quantize / octet's float pass",
             seconds["octet quantize"] / seconds["octet float pass"], OF_FLOAT_PASS, "x"),
        line("octet quantize / NNCF", seconds["octet quantize"] / seconds["NNCF"], OF_NNCF, "x"),
        line("memory", peaks["octet quantize"], MEMORY_MB, "MB"),
        line("memory, most - least over the numbers of pictures",
             max(by_count.values()) - min(by_count.values()), MEMORY_SPREAD_MB, "MB")]
    return all(kept)


def compare(octet, work, rounds=3):
    """Runs and prints everything; the figures by name."""
    print(f"NNCF {version('nncf')}, {NAME}, {len(picture_files())} pictures, {octet.threads} "
          f"threads, {os.cpu_count()} processors, median of {rounds}", flush=True)
    tools = {"octet float pass": lambda: run_float(octet),
             "octet quantize": lambda: run_quantize(octet, work),
             "NNCF": lambda: run_nncf(work)}
    runs = {tool: [] for tool in tools}
    for _ in range(rounds):
        for tool, run in tools.items():
            runs[tool].append(run())
    seconds = {tool: statistics.median(s for s, _ in r) for tool, r in runs.items()}
    peaks = {tool: max(mb for _, mb in r) for tool, r in runs.items()}
    by_count = memory_by_count(octet, work)
    kept = report(seconds, peaks, by_count)
    return {"seconds": seconds, "peak_mb": peaks, "peak_mb_by_pictures": by_count,
            "limits_kept": kept}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    peers.need_shared("bench_quantize")
    try:
        with tempfile.TemporaryDirectory() as work:
            result = compare(Octet(args.octet, args.threads), Path(work), args.rounds)
    except RuntimeError as error:
        sys.exit(f"bench_quantize: {error}")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2])
    else:
        main()
