# SPDX-License-Identifier: Apache-2.0
"""Times a training step of octet beside PyTorch on the same CPU, threads and batch.

usage: bench_train.py BENCH_TRAIN [--threads N] [--rounds N] [--json FILE] [NAME...]

Forward and backward in float32; PyTorch eagerly, in channels_last and in its usual layout, whichever
is faster (one of them may crash or hang), with a loss that costs nothing (the sum of squares of the raw
predictions), octet with the detector's own. The two take turns. A
figure is the best step of all rounds; memory is the peak of the process.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
# name: file, loss, batch, size, raw predictions
CASES = {
    "yolo_nas": ("yolo-nas/yolo_nas_bccd_train.onnx", "yolo_nas", 8, 320,
                 ["cls_score_list", "reg_distri_list"]),
    "yolov8n": ("models/yolov8n.onnx", "yolov8", 4, 640,
                [f"/model.22/Concat{s}_output_0" for s in ("", "_1", "_2")]),
}


def step_of_pytorch(path, batch, size, outputs, threads, steps, layout):
    """Runs in a process of its own: seconds of the best step and the peak of memory."""
    import resource
    import time

    import torch

    from onnx_module import OnnxModule

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    form = getattr(torch, layout)
    net = OnnxModule(path, outputs).to(memory_format=form)
    x = torch.rand(batch, 3, size, size).to(memory_format=form)
    best = 1e9
    for _ in range(steps):
        start = time.perf_counter()
        net.zero_grad(set_to_none=True)
        loss = sum((y * y).sum() for y in net(x))
        loss.backward()
        best = min(best, time.perf_counter() - start)
    print(json.dumps({"seconds": best,
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}))


def run_pytorch(case, threads, steps):
    path, _, batch, size, outputs = case
    found = []
    for layout in ("channels_last", "contiguous_format"):
        words = [sys.executable, __file__, "--child", str(SHARED / path), str(batch), str(size),
                 str(threads), str(steps), layout, *outputs]
        try:
            result = subprocess.run(words, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            continue
        if result.returncode == 0:
            found.append(json.loads(result.stdout))
    return min(found, key=lambda r: r["seconds"])


def run_octet(program, case, threads, steps):
    path, loss, batch, size, _ = case
    words = [program, str(SHARED / path), loss, str(batch), str(size), str(steps), str(threads)]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    found = re.search(r"best ([\d.]+) s, peak of the process ([\d.]+) MB", text)
    return {"seconds": float(found[1]), "peak_mb": float(found[2])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--json")
    args = parser.parse_args()
    results = {}
    for name in args.names or CASES:
        best = {}
        for _ in range(args.rounds):
            for tool, run in (("octet", lambda: run_octet(args.program, CASES[name], args.threads,
                                                          args.steps)),
                              ("pytorch", lambda: run_pytorch(CASES[name], args.threads,
                                                              args.steps))):
                now = run()
                old = best.get(tool, now)
                best[tool] = {k: min(old[k], now[k]) for k in now}
        results[name] = best
        a, b = best["octet"], best["pytorch"]
        print(f"{name:10} octet {a['seconds']:.3f} s, {a['peak_mb']:.0f} MB; PyTorch "
              f"{b['seconds']:.3f} s, {b['peak_mb']:.0f} MB; time {a['seconds'] / b['seconds']:.2f}, "
              f"memory {a['peak_mb'] / b['peak_mb']:.2f}", flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--child":
        step_of_pytorch(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[8:],
                        int(sys.argv[5]), int(sys.argv[6]), sys.argv[7])
    else:
        main()
