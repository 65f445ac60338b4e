# SPDX-License-Identifier: Apache-2.0
"""OpenVINO IR of octet beside NNCF's: outputs, AP, layers in INT8, time.

usage: bench_openvino.py OCTET [--networks N,..] [--limit N] [--work DIR] [--no-time]
                         [--only float|int8] [--overflow-fix enable|first_layer_only|disable]
                         [--all-labels]

For each network: the float IR in OpenVINO against octet on the ONNX file (largest difference over
the largest magnitude); octet's INT8 file for target openvino, as ONNX in octet and as IR in OpenVINO;
NNCF's INT8 file in OpenVINO and read by octet; how many layers with weights OpenVINO computes in INT8
in both; and the time of octet's IR over that of NNCF's, which take turns. Quantized files of others
are written as IR and compared, too. --all-labels scores BCCD's training pictures and COCO's
calibration pictures, too. Without VNNI sums of OpenVINO saturate and AP differs from octet's with
--overflow-fix disable. Times on a busy machine say little; their ratio says more.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import accuracy
import int8_files
import peers
import pictures
import runtimes
from program import Octet

LAYERS = ("Convolution", "GroupConvolution", "Deconvolution", "FullyConnected")
# Files that are quantized already, with the network whose outputs they have.
QUANTIZED = {"yolov8n_qdq_int8": "yolov8n", "yolov8n_qdq_allops_broken": "yolov8n",
             "mobilenetv2_qdq_244": None, "mobilenetv2_qoperator": None, "yolov8n_dynint8": None,
             "nms-yolov8": None}
ROUNDS, RUNS = 5, 6


def compiled(path):
    import openvino
    core = openvino.Core()
    return core.compile_model(core.read_model(str(path)), "CPU", {
        "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 2, "NUM_STREAMS": 1})


def in_integers(path):
    kinds = [op.get_rt_info() for op in compiled(path).get_runtime_model().get_ops()]
    kinds = [k for k in kinds if str(k["layerType"].value) in LAYERS]
    return sum("I8" in str(k["primitiveType"].value) for k in kinds), len(kinds)


def time_ratio(own, theirs, name, inputs):
    """Median milliseconds of both; they take turns in one process."""
    files = [compiled(own), compiled(theirs)]
    times = [[], []]
    for _ in range(ROUNDS):
        for k, network in enumerate(files):
            for _ in range(RUNS):
                start = time.perf_counter()
                network({name: inputs})
                times[k].append(time.perf_counter() - start)
    return [1e3 * statistics.median(t) for t in times]


def difference(octet, onnx, xml, work):
    """The IR in OpenVINO against octet on the ONNX file, on two pictures."""
    network, worst = peers.by_name(onnx.stem), 0.0
    run = compiled(xml)
    for inputs in peers.inputs_of(network):
        want = peers.octet_run(octet.path, onnx, inputs, work)
        got = run(inputs)
        for port in run.outputs:
            # a value may have taken the name of an operator that was folded into it
            w = next(want[peers.file_name(n)] for n in sorted(port.names)
                     if peers.file_name(n) in want)
            g = got[port]
            if w.shape != g.shape:
                raise RuntimeError(f"{port.any_name}: {g.shape}, not {w.shape}")
            if w.size:
                top = float(np.max(np.abs(w))) or 1.0
                worst = max(worst, float(np.max(np.abs(w.astype(float) - g))) / top)
    return worst


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.octet = Octet(args.octet, 2)

    def export(self, model):
        out = self.work / f"{model.stem}.xml"
        self.octet.run("export", model, "-o", out, "--force")
        return out

    def accuracy(self, path):
        return runtimes.accuracy(path, "openvino", 2, self.task, self.inputs, self.octet, self.work)

    def float_row(self, name):
        model = peers.by_name(name).file
        return {"float": difference(self.octet, model, self.export(model), self.work)}

    def int8_row(self, name):
        self.task = pictures.prepare(name, self.work, self.args.limit, self.args.all_labels)
        self.inputs = pictures.Inputs(self.task, self.work)
        model, row = self.task.network.file, {}
        own, theirs = self.work / f"{name}.int8.onnx", self.work / f"{name}.nncf.xml"
        if not own.exists():
            self.octet.run("quantize", model, "-o", own, "--target", "openvino", "--images",
                           self.task.calibration,
                           *(["--overflow-fix", self.args.overflow_fix]
                             if self.args.overflow_fix else []))
        if not theirs.exists():
            int8_files.run([sys.executable, int8_files.__file__, name, theirs])
        xml = self.export(own)
        row["octet"], row["IR in OpenVINO"] = self.octet.eval(own, self.task)[0], self.accuracy(xml)
        row["NNCF in OpenVINO"] = self.accuracy(theirs)
        row["NNCF in octet"] = self.octet.eval(theirs, self.task)[0]
        row["INT8 layers"], row["NNCF's"] = in_integers(xml), in_integers(theirs)
        if not self.args.no_time:
            row["ms"], row["NNCF ms"] = time_ratio(xml, theirs, self.task.network.input,
                                                   self.inputs[0])
            row["ratio"] = row["ms"] / row["NNCF ms"]
        return row


def text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("--networks", type=lambda t: t.split(","))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--all-labels", action="store_true")
    parser.add_argument("--overflow-fix", choices=["enable", "first_layer_only", "disable"])
    parser.add_argument("--only", choices=["float", "int8"])
    args = parser.parse_args()
    peers.need_shared("bench_openvino")
    with tempfile.TemporaryDirectory() as folder:
        work = args.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(args, work)
        rows = [(n, bench.float_row) for n in list(accuracy.NETWORKS) + ["yolo_nas_bccd_folded"] +
                list(QUANTIZED) if args.only != "int8"]
        rows += [(n, bench.int8_row) for n in accuracy.NETWORKS if args.only != "float"]
        for name, make in rows:
            if args.networks and name not in args.networks:
                continue
            row = {}
            accuracy.attempt(row, "row", lambda: make(name))
            facts = row.get("row", {})
            print(name, *(f"{k} {text(v)}" for k, v in facts.items()), *row.get("errors", []),
                  sep="  ", flush=True)


if __name__ == "__main__":
    main()
