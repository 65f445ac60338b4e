# SPDX-License-Identifier: Apache-2.0
"""Runs the small quantized networks of ../shared/data/conformance/ort-qdq in octet and in ONNX
Runtime on random numbers and compares.

usage: check_qdq.py OCTET [NAME...]

Each output may differ by one step in at most 1 of 100 elements of these small tensors, from ONNX
Runtime with or without its optimiser. A step is that of its DequantizeLinear; without one, that of
8 bits over the output's range. Where parts run in float (16-bit codes), a code near a tie may flip
and spread: where ONNX Runtime itself moves further when a hundredth of its inputs moves by one
step, that (and half as much again) is the bound.
One line for each network, then `N passed, N failed, N skipped`.
"""

import pathlib
import sys
import tempfile

import numpy as np
import onnxruntime as ort

import check_models
import peers

TYPES = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8,
         "tensor(uint16)": np.uint16, "tensor(int16)": np.int16, "tensor(float16)": np.float16,
         "tensor(int32)": np.int32, "tensor(int64)": np.int64}


class Saturated(Exception):
    """ONNX Runtime is no judge on this CPU."""


def random_inputs(session):
    """The same numbers each time."""
    random = np.random.default_rng(7)
    inputs = {}
    for i in session.get_inputs():
        shape = [d if isinstance(d, int) else 2 for d in i.shape]
        kind = np.dtype(TYPES[i.type])
        if kind.kind == "f":
            inputs[i.name] = random.normal(size=shape).astype(kind)
        else:
            info = np.iinfo(kind)
            inputs[i.name] = random.integers(max(info.min, -1000), min(info.max, 1000) + 1, shape,
                                             dtype=kind)
    return inputs


def distance(got, want, step):
    """(worst difference in steps, share of elements that differ)"""
    if got.dtype != want.dtype or got.shape != want.shape:
        raise RuntimeError(f"{got.dtype}{list(got.shape)}, want {want.dtype}{list(want.shape)}")
    if want.dtype.kind in "iu":
        step = 1.0
    elif not step:
        step = float(np.ptp(want)) / 255 or 1.0
    steps = np.abs(got.astype(np.float64) - want.astype(np.float64)) / step
    return (float(steps.max()), float(np.mean(steps > 0.01))) if steps.size else (0.0, 0.0)


def nudged(a, seed):
    """One element of a hundred is another by one step of 8 bits, or by one code."""
    random = np.random.default_rng(seed)
    step = np.ptp(a) / 255 if a.dtype.kind == "f" else 1
    return np.where(random.random(a.shape) < 0.01, a + a.dtype.type(step), a).astype(a.dtype)


def farthest(names, steps, got, wanted):
    """The worst (steps, share) over all outputs."""
    pairs = [distance(g, w, steps.get(n)) for n, g, w in zip(names, got, wanted)]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def check(octet, path, folder):
    """Returns (passed, text)."""
    sessions = [check_models.session(path, optimise) for optimise in (True, False)]
    names = [o.name for o in sessions[0].get_outputs()]
    steps = check_models.output_steps(path)
    inputs = random_inputs(sessions[0])
    files = peers.octet_run(octet, path, inputs, folder)
    got = [files[peers.file_name(n)] for n in names]
    wanted = [s.run(None, inputs) for s in sessions]
    best = min(farthest(names, steps, got, w) for w in wanted)
    own = (0.0, 0.0)
    for seed in range(3):
        near = {n: nudged(a, seed) for n, a in inputs.items()}
        own = max(own, farthest(names, steps, sessions[1].run(None, near), wanted[1]))
    text = f"{best[0]:7.3f} steps, {best[1]:8.3%} differ"
    if best[0] <= 1.01 and best[1] <= 0.01:
        return True, text
    return best[0] <= 1.5 * own[0] and best[1] <= 1.5 * own[1], (
        f"{text} (ONNX Runtime against itself: {own[0]:.3f}, {own[1]:.3%})")


def main():
    octet, chosen = sys.argv[1], sys.argv[2:]
    peers.need_shared("check_qdq")
    count = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(pathlib.Path(peers.SHARED, "data/conformance/ort-qdq").glob("*.onnx")):
            if chosen and path.stem not in chosen:
                continue
            try:
                if peers.is_saturated(path.stem):
                    raise Saturated
                passed, text = check(octet, path, folder)
                verdict = "passed" if passed else "failed"
            except (ort.capi.onnxruntime_pybind11_state.Fail,
                    ort.capi.onnxruntime_pybind11_state.NotImplemented,
                    ort.capi.onnxruntime_pybind11_state.InvalidArgument) as error:
                verdict, text = "skipped", "ONNX Runtime: " + str(error).splitlines()[0][:100]
            except Saturated:
                verdict, text = "skipped", "ONNX Runtime's sums saturate on this CPU"
            except (RuntimeError, OSError, KeyError) as error:
                verdict, text = "failed", str(error)
            count[verdict] += 1
            print(f"{path.stem:64s} {verdict:8s} {text}", flush=True)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
