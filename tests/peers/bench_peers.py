# SPDX-License-Identifier: Apache-2.0
"""Measures octet, ONNX Runtime and OpenVINO side by side: FP32 and INT8, batch 1, the same threads.

usage: bench_peers.py OCTET [--threads N] [--rounds N] [--seconds S] [--json FILE]
       [--figures FILE] [--precision fp32|int8] [NAME...]

In INT8 octet runs the file it makes for itself, ONNX Runtime the one octet makes for it, and
OpenVINO the one NNCF makes; they are kept in the folder of the program.

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

import figures
import int8_files
import peers

NAMES = ["yolov8n", "yolox_nano_416", "picodet_s_416", "nanodet_m_416", "yolo_nas_bccd_folded",
         "mobilenet_v1_0.25_224"]
TOOLS = ["octet", "onnxruntime", "openvino"]
PRECISIONS = ["fp32", "int8"]
# (network, or None for the geometric mean over all): octet's time over the peer's, at most.
GOALS = {
    "fp32": {("yolov8n", "onnxruntime"): 0.70, ("yolov8n", "openvino"): 1.00,
             (None, "onnxruntime"): 0.75, (None, "openvino"): 0.95},
    "int8": {**{(name, tool): 1.00 for name in NAMES for tool in TOOLS[1:]},
             ("yolov8n", "onnxruntime"): 0.65, ("yolov8n", "openvino"): 0.80},
}
# octet's FP32 time over its INT8 time, at least.
SPEED_UP = {**{name: 1.0 for name in NAMES}, "yolov8n": 2.8}
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


def worker(tool, path, like, threads, seconds):
    """In its own process: prints the median of as many runs as fit. The ONNX file `like` tells the
    inputs."""
    import onnx
    graph = onnx.load(like).graph
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


def measure(tool, octet, path, threads, seconds, like=None):
    if tool == "octet":
        command = [octet, "bench", path, "--threads", str(threads), "--warmup", str(WARMUP),
                   "--seconds", str(seconds), "--json"]
    else:
        command = [sys.executable, __file__, "--worker", tool, path, like or path,
                   str(threads), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"bench_peers: {tool}: {(done.stderr or done.stdout).strip()}")
    return float(json.loads(done.stdout)["median_ms"])


def ratio_text(ratio, goal, at_least=False):
    if goal is None:
        return f"{ratio:6.2f}         "
    met = ratio >= goal if at_least else ratio <= goal
    sign = (">=" if met else "< ") if at_least else ("<=" if met else "> ")
    return f"{ratio:6.2f} {sign} {goal:.2f}  "


def report(precision, results):
    """Prints the table; returns the geometric means and whether all goals are met."""
    ratios = {tool: [] for tool in TOOLS[1:]}
    goals, met = GOALS[precision], True
    print(f"\n{precision.upper() + ', ms':24s}{'octet':>9s}{'ORT':>9s}{'OpenVINO':>10s}"
          "   octet/ORT      octet/OpenVINO")
    for name, ms in results.items():
        line = f"{name:24s}{ms['octet']:9.2f}{ms['onnxruntime']:9.2f}{ms['openvino']:10.2f}  "
        for tool in TOOLS[1:]:
            ratio, goal = ms["octet"] / ms[tool], goals.get((name, tool))
            ratios[tool].append(ratio)
            met = met and (goal is None or ratio <= goal)
            line += ratio_text(ratio, goal)
        print(line.rstrip())
    line, means = f"{'geometric mean':52s}  ", {}
    for tool in TOOLS[1:]:
        means[tool] = math.exp(statistics.fmean(map(math.log, ratios[tool])))
        goal = goals.get((None, tool))
        met = met and (goal is None or means[tool] <= goal)
        line += ratio_text(means[tool], goal)
    print(line.rstrip())
    return means, met


def report_speed_up(results):
    """What each tool gains by INT8; whether octet gains what it should."""
    met = True
    print(f"\n{'FP32 time / INT8 time':24s}{'octet':>9s}{'':9s}{'ORT':>9s}{'OpenVINO':>10s}")
    for name in results["fp32"]:
        gain = {tool: results["fp32"][name][tool] / results["int8"][name][tool] for tool in TOOLS}
        goal = SPEED_UP.get(name)
        met = met and (goal is None or gain["octet"] >= goal)
        print(f"{name:24s}   {ratio_text(gain['octet'], goal, True)}{gain['onnxruntime']:9.2f}"
              f"{gain['openvino']:10.2f}")
    return met


def files_of(octet, names, precisions):
    """[precision][name][tool]: the file it runs."""
    folder = Path(octet).resolve().parent / "bench-peers"
    files = {}
    for precision in precisions:
        files[precision] = {}
        for name in names:
            files[precision][name] = (
                int8_files.by_tool(octet, name, folder) if precision == "int8" else
                {tool: str(peers.by_name(name).file) for tool in TOOLS})
    return files


def measure_all(args, files):
    """[precision][name][tool]: a median for each round."""
    times = {precision: {name: {tool: [] for tool in TOOLS} for name in by_name}
             for precision, by_name in files.items()}
    for round_ in range(args.rounds):
        for name in next(iter(files.values())):
            like = str(peers.by_name(name).file)
            for precision, by_name in files.items():
                # Nobody always comes first after a change of network.
                for i in range(len(TOOLS)):
                    tool = TOOLS[(i + round_) % len(TOOLS)]
                    times[precision][name][tool].append(measure(
                        tool, args.octet, by_name[name][tool], args.threads, args.seconds, like))
        for precision, by_name in times.items():
            print(f"round {round_ + 1} of {args.rounds}, {precision}: " + "  ".join(
                f"{name} {'/'.join(format(t[tool][-1], '.1f') for tool in TOOLS)}"
                for name, t in by_name.items()), flush=True)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--precision", choices=PRECISIONS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figures", type=Path, help="the file of figures the pages quote")
    args = parser.parse_intermixed_args()
    peers.need_shared("bench_peers")

    import onnxruntime
    import openvino
    precisions = [args.precision] if args.precision else PRECISIONS
    files = files_of(args.octet, args.names or NAMES, precisions)
    print(f"ONNX Runtime {onnxruntime.__version__}, OpenVINO {openvino.__version__}; batch 1, "
          f"{args.threads} threads; {args.rounds} rounds of {args.seconds:g} s each", flush=True)
    times = measure_all(args, files)
    results = {precision: {name: {tool: statistics.median(ms) for tool, ms in t.items()}
                           for name, t in by_name.items()} for precision, by_name in times.items()}
    means, met = {}, True
    for precision in precisions:
        means[precision], kept = report(precision, results[precision])
        met = met and kept
    if len(precisions) == 2:
        met = report_speed_up(results) and met
    print("all goals met" if met else
          "not all goals are met: see octet profile MODEL, and octet bench FP32 INT8")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps({
            "threads": args.threads, "rounds": args.rounds, "median_ms": results,
            "round_median_ms": times, "geometric_mean_ratio": means, "goals_met": met,
        }, indent=1) + "\n")
    if args.figures:
        figures.update(args.figures, {f"ms/{precision}/{name}/{tool}": ms
                                      for precision, by_name in results.items()
                                      for name, by_tool in by_name.items()
                                      for tool, ms in by_tool.items()},
                       figures.machine(args.octet, args.threads),
                       f"make bench-peers; median of {args.rounds} rounds of {args.seconds:g} s, "
                       f"ONNX Runtime {onnxruntime.__version__}, OpenVINO {openvino.__version__}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(*sys.argv[2:5], int(sys.argv[5]), float(sys.argv[6]))
    else:
        main()
