# SPDX-License-Identifier: Apache-2.0
"""Holds files of `octet prune` against onnx.checker and ONNX Runtime.

usage: check_pruned.py OCTET

Six networks without 10, 30 and 50 % of their channels: the file is valid by a full check, and ONNX
Runtime computes with it what it computes with the masked one, within 1e-5 of an output's largest
magnitude. Ends with `N passed, N failed, N skipped`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

import peers
from check_simplify import run_ort, worst_error

NAMES = ["yolov8n", "yolox_nano_416", "picodet_s_416", "nanodet_m_416", "mobilenet_v1_0.25_224",
         "yolo_nas_bccd_train"]
SHARES = [0.1, 0.3, 0.5]
TOLERANCE = 1e-5


def prune(octet, source, target, share, *more):
    done = subprocess.run([octet, "prune", str(source), "-o", str(target), "--channels", str(share),
                           "--multiple", "1", "--json", *more],
                          capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip())
    onnx.checker.check_model(str(target), full_check=True)
    return json.loads(done.stdout)


def check_network(octet, name, share, folder):
    network = peers.by_name(name)
    cut, mask = Path(folder) / "cut.onnx", Path(folder) / "mask.onnx"
    told = prune(octet, network.file, cut, share)
    prune(octet, network.file, mask, share, "--mask")
    worst = max(worst_error(run_ort(cut, i), run_ort(mask, i)) for i in peers.inputs_of(network))
    gone = 1 - told["macs_left"] / told["macs"]
    smaller = cut.stat().st_size < mask.stat().st_size
    return smaller and gone > 0 and worst <= TOLERANCE, \
        f"{100 * gone:4.1f} % of the MACs removed; cut and masked differ by {worst:.1e}"


def main():
    octet = sys.argv[1]
    peers.need_shared("check_pruned")
    n_passed = n_failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            for share in SHARES:
                try:
                    passed, text = check_network(octet, name, share, folder)
                except (RuntimeError, OSError, onnx.checker.ValidationError) as error:
                    passed, text = False, str(error)
                n_passed, n_failed = n_passed + passed, n_failed + (not passed)
                print(f"{name:24s} {share:.1f} {'passed' if passed else 'failed':8s} {text}",
                      flush=True)
    print(f"{n_passed} passed, {n_failed} failed, 0 skipped")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
