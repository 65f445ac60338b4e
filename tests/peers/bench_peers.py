# SPDX-License-Identifier: Apache-2.0
"""Measures octet, ONNX Runtime and OpenVINO side by side: FP32, batch 1, the same threads.

usage: bench_peers.py OCTET [--threads N] [--rounds N] [--seconds S] [--json FILE] [NAME...]

The tools take turns, one process at a time (their idle threads spin), so that a change of the
machine's speed meets all of them. A figure is the median over rounds of each round's median.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import peers

NAMES = ["yolov8n", "yolox_nano_416", "picodet_s_416", "nanodet_m_416", "yolo_nas_bccd_folded",
         "mobilenet_v1_0.25_224"]
TOOLS = ["octet", "onnxruntime", "openvino"]
# (network, or None for the geometric mean over all): octet's time over the peer's, at most.
GOALS = {("yolov8n", "onnxruntime"): 0.70, ("yolov8n", "openvino"): 1.00,
         (None, "onnxruntime"): 0.75, (None, "openvino"): 0.95}
WARMUP = 3


def make_onnxruntime(path, threads, spin=True):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spin else "0")
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


def make_openvino(path, threads):
    import openvino as ov
    compiled = ov.Core().compile_model(path, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        # Its default is bfloat16 where the machine has it.
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    return lambda inputs: request.infer(inputs, share_inputs=True, share_outputs=True)


def worker(tool, path, threads, seconds):
    """In its own process: prints the median of as many runs as fit."""
    import onnx
    graph = onnx.load(path).graph
    constants = {i.name for i in graph.initializer}
    rng = np.random.default_rng(1)
    inputs = {}
    for value in graph.input:
        if value.name not in constants:
            dims = [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]
            inputs[value.name] = rng.random(dims, np.float32)
    run = {"onnxruntime": make_onnxruntime, "openvino": make_openvino}[tool](path, threads)
    for _ in range(WARMUP):
        run(inputs)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run(inputs)
        times.append(time.perf_counter() - start)
    print(json.dumps({"median_ms": 1e3 * statistics.median(times)}))


def measure(tool, octet, path, threads, seconds):
    if tool == "octet":
        command = [octet, "bench", path, "--threads", str(threads), "--warmup", str(WARMUP),
                   "--seconds", str(seconds), "--json"]
    else:
        command = [sys.executable, __file__, "--worker", tool, path, str(threads), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"bench_peers: {tool}: {(done.stderr or done.stdout).strip()}")
    return float(json.loads(done.stdout)["median_ms"])


def ratio_text(ratio, goal):
    if goal is None:
        return f"{ratio:6.2f}         "
    return f"{ratio:6.2f} {'<=' if ratio <= goal else '> '} {goal:.2f}  "


def report(results):
    """Prints the table; returns the geometric means and whether all goals are met."""
    ratios = {tool: [] for tool in TOOLS[1:]}
    met = True
    print(f"\n{'ms':24s}{'octet':>9s}{'ORT':>9s}{'OpenVINO':>10s}   octet/ORT      octet/OpenVINO")
    for name, ms in results.items():
        line = f"{name:24s}{ms['octet']:9.2f}{ms['onnxruntime']:9.2f}{ms['openvino']:10.2f}  "
        for tool in TOOLS[1:]:
            ratio, goal = ms["octet"] / ms[tool], GOALS.get((name, tool))
            ratios[tool].append(ratio)
            met = met and (goal is None or ratio <= goal)
            line += ratio_text(ratio, goal)
        print(line.rstrip())
    line, means = f"{'geometric mean':52s}  ", {}
    for tool in TOOLS[1:]:
        means[tool] = math.exp(statistics.fmean(map(math.log, ratios[tool])))
        goal = GOALS[None, tool]
        met = met and means[tool] <= goal
        line += ratio_text(means[tool], goal)
    print(line.rstrip())
    return means, met


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_intermixed_args()
    peers.need_shared("bench_peers")

    import onnxruntime
    import openvino
    print(f"ONNX Runtime {onnxruntime.__version__}, OpenVINO {openvino.__version__}; FP32, "
          f"batch 1, {args.threads} threads; {args.rounds} rounds of {args.seconds:g} s each")
    times = {name: {tool: [] for tool in TOOLS} for name in args.names or NAMES}
    for round_ in range(args.rounds):
        for name in times:
            path = str(peers.by_name(name).file)
            # Nobody always comes first after a change of network.
            for i in range(len(TOOLS)):
                tool = TOOLS[(i + round_) % len(TOOLS)]
                times[name][tool].append(measure(tool, args.octet, path, args.threads,
                                                 args.seconds))
        print(f"round {round_ + 1} of {args.rounds}: " + "  ".join(
            f"{name} {'/'.join(format(t[tool][-1], '.1f') for tool in TOOLS)}"
            for name, t in times.items()), flush=True)

    results = {name: {tool: statistics.median(ms) for tool, ms in t.items()}
               for name, t in times.items()}
    means, met = report(results)
    print("all goals met" if met else "not all goals are met: see octet profile MODEL")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({
            "threads": args.threads, "rounds": args.rounds, "median_ms": results,
            "round_median_ms": times, "geometric_mean_ratio": means, "goals_met": met,
        }, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
