# SPDX-License-Identifier: Apache-2.0
"""Times a training step of octet beside PyTorch on the same CPU, threads and batch.

usage: bench_train.py BENCH_TRAIN [--threads N] [--rounds N] [--steps N] [--timeout SECONDS]
                      [--precision f32,bf16] [--json FILE] [NAME...]

Forward and backward; PyTorch eagerly (bf16: by autocast), in channels_last and in its usual layout, and the
faster one counts; a layout that crashes or takes longer than --timeout is left out with a note. PyTorch's
loss costs nothing (the sum of squares of the predictions), octet's is the detector's own or cross
entropy. The two take turns. A figure is the best step of all rounds, memory the peak of the process.
With one thread, times are those of the CPU, which other processes disturb less.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
# name: file (None: made here), loss, batch, size, raw predictions
CASES = {
    "yolo_nas": ("yolo-nas/yolo_nas_bccd_train.onnx", "yolo_nas", 8, 320,
                 ["cls_score_list", "reg_distri_list"]),
    "yolov8n": ("models/yolov8n.onnx", "yolov8", 4, 640,
                [f"/model.22/Concat{s}_output_0" for s in ("", "_1", "_2")]),
    "resnet18": (None, "classify", 16, 224, ["logits"]),
}
LAYOUTS = ("channels_last", "contiguous_format")


def write_resnet(path):
    """torchvision's ResNet-18 with random weights, BatchNorm as nodes of its own."""
    import torch
    import torchvision

    torch.manual_seed(0)
    net = torchvision.models.resnet18(weights=None).train()
    torch.onnx.export(net, (torch.rand(1, 3, 224, 224),), path, dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False,
                      input_names=["input"], output_names=["logits"],
                      dynamic_axes={"input": {0: "n"}, "logits": {0: "n"}})


def step_of_pytorch(path, batch, size, threads, steps, layout, precision, *outputs):
    """Runs in a process of its own: seconds of the best step and the peak of memory."""
    import contextlib
    import resource
    import time

    import torch

    from onnx_module import OnnxModule

    batch, size, threads, steps = int(batch), int(size), int(threads), int(steps)
    clock = time.process_time if threads == 1 else time.perf_counter
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    form = getattr(torch, layout)
    net = OnnxModule(path, list(outputs)).to(memory_format=form)
    x = torch.rand(batch, 3, size, size).to(memory_format=form)
    best = 1e9
    for _ in range(steps):
        start = clock()
        net.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16) if precision == "bf16" \
                else contextlib.nullcontext():
            loss = sum((y * y).sum() for y in net(x))
        loss.backward()
        best = min(best, clock() - start)
    print(json.dumps({"seconds": best,
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}))


class Bench:
    def __init__(self, args, folder):
        self.args = args
        self.folder = Path(folder)
        self.bad = set()  # (name, precision, layout) that crashed or took too long

    def path(self, name):
        file = CASES[name][0]
        if file:
            return str(SHARED / file)
        made = self.folder / f"{name}.onnx"
        if not made.exists():
            subprocess.run([sys.executable, __file__, "--resnet", str(made)], check=True,
                           capture_output=True)
        return str(made)

    def pytorch(self, name, precision):
        _, _, batch, size, outputs = CASES[name]
        found = []
        for layout in LAYOUTS:
            if (name, precision, layout) in self.bad:
                continue
            words = [sys.executable, __file__, "--child", self.path(name), batch, size,
                     self.args.threads, self.args.steps, layout, precision, *outputs]
            why = f"took more than {self.args.timeout} s"
            try:
                result = subprocess.run([str(w) for w in words], capture_output=True, text=True,
                                        timeout=self.args.timeout)
                if result.returncode == 0:
                    found.append(json.loads(result.stdout))
                    continue
                why = f"ended with {result.returncode}"
            except subprocess.TimeoutExpired:
                pass
            self.bad.add((name, precision, layout))
            print(f"note: {name}: PyTorch {precision} in {layout} {why}; left out", flush=True)
        return min(found, key=lambda r: r["seconds"], default=None)

    def octet(self, name, precision):
        _, loss, batch, size, _ = CASES[name]
        words = [self.args.program, self.path(name), loss, batch, size, self.args.steps,
                 self.args.threads, 0, precision]
        text = subprocess.run([str(w) for w in words], check=True, capture_output=True,
                              text=True).stdout
        found = re.search(r"best ([\d.]+) s, peak of the process ([\d.]+) MB", text)
        return {"seconds": float(found[1]), "peak_mb": float(found[2])}

    def measure(self, name, precision):
        best = {}
        for _ in range(self.args.rounds):
            for tool in ("octet", "pytorch"):
                now = getattr(self, tool)(name, precision)
                old = best.get(tool) or now
                best[tool] = now and {k: min(old[k], now[k]) for k in now}
        return best


def line(name, precision, best):
    def text(r):
        return f"{r['seconds']:.3f} s, {r['peak_mb']:.0f} MB" if r else "none"

    a, b = best["octet"], best["pytorch"]
    ratio = (f"time {a['seconds'] / b['seconds']:.2f}, memory {a['peak_mb'] / b['peak_mb']:.2f}"
             if b else "")
    return f"{name:10} {precision:4}  octet {text(a)}; PyTorch {text(b)}; {ratio}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--precision", default="f32,bf16")
    parser.add_argument("--json")
    args = parser.parse_intermixed_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        for name in args.names or CASES:
            for precision in args.precision.split(","):
                best = bench.measure(name, precision)
                results.setdefault(name, {})[precision] = best
                print(line(name, precision, best), flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        step_of_pytorch(*sys.argv[2:])
    elif sys.argv[1:2] == ["--resnet"]:
        write_resnet(sys.argv[2])
    else:
        main()
