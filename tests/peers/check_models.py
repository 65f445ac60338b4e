# SPDX-License-Identifier: Apache-2.0
"""Runs the networks of ../shared in octet and in ONNX Runtime on real images and compares.

usage: check_models.py OCTET [NAME...]

Float networks: within 2e-4 of the output's largest magnitude. Quantized ones: within 2 steps of
the output's quantization, of ONNX Runtime with or without its optimiser. In a deep network one code
that rounds otherwise spreads until the output has moved by many steps, so this holds only
where octet's codes are ONNX Runtime's throughout.
One line for each network, then `N passed, N failed, N skipped`.
"""

import sys
import tempfile

import numpy as np
import onnx
import onnxruntime as ort

import peers

FLOAT_TOLERANCE = 2e-4
STEPS_TOLERANCE = 2.0


def make_session(path, optimise, precise):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    if precise:
        options.add_session_config_entry("session.x64quantprecision", "1")
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def session(path, optimise):
    """Precise where ONNX Runtime can be: on CPUs that have no dot product of bytes (VNNI) its sums of
    u8 * s8 saturate otherwise. The setting fails on networks that use a weight twice."""
    try:
        return make_session(path, optimise, True)
    except ort.capi.onnxruntime_pybind11_state.Fail:
        return make_session(path, optimise, False)


def output_steps(path):
    """The quantization step of each output that comes straight from a DequantizeLinear."""
    model = onnx.load(path)
    constants = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    makers = {o: n for n in model.graph.node for o in n.output}

    def constant(name):
        while name not in constants and name in makers:
            node = makers[name]
            if node.op_type == "Constant":
                return onnx.numpy_helper.to_array(node.attribute[0].t)
            name = node.input[0]
        return constants[name]

    return {o.name: float(np.max(constant(makers[o.name].input[1])))
            for o in model.graph.output if makers[o.name].op_type == "DequantizeLinear"}


def float_error(got, want):
    largest = float(np.max(np.abs(want))) if want.size else 0.0
    worst = float(np.max(np.abs(got - want))) if want.size else 0.0
    return worst / largest if largest else worst


def steps_error(got, want, step):
    """The worst difference in steps. An output with a float tail has no step of its own: then it
    is an 8-bit step over the range of each of its parts (boxes are not scores)."""
    if step:
        return float(np.max(np.abs(got - want))) / step
    parts = [np.s_[:, :4], np.s_[:, 4:]] if want.ndim == 3 else [np.s_[:]]
    worst = 0.0
    for part in parts:
        width = float(np.ptp(want[part])) / 255
        worst = max(worst, float(np.max(np.abs(got[part] - want[part]))) / (width or 1.0))
    return worst


def compare(network, steps, names, got, wanted):
    """The worst error over all outputs; raises RuntimeError where they differ in kind."""
    worst = 0.0
    for name, have, want in zip(names, got, wanted):
        if have is None:
            raise RuntimeError(f"no output '{name}'")
        if have.shape != want.shape or have.dtype != want.dtype:
            raise RuntimeError(f"'{name}' is {have.dtype}{list(have.shape)}, "
                               f"want {want.dtype}{list(want.shape)}")
        if not np.all(np.isfinite(have) == np.isfinite(want)):
            raise RuntimeError(f"'{name}' has other infinities or NaN")
        error = (steps_error(have, want, steps.get(name)) if network.quantized
                 else float_error(have, want))
        worst = max(worst, error)
    return worst


def check(octet, network, folder):
    """Returns (passed, text)."""
    fast, plain = session(network.file, True), session(network.file, False)
    names = [o.name for o in fast.get_outputs()]
    steps = output_steps(network.file) if network.quantized else {}
    worst = 0.0
    for inputs in peers.inputs_of(network):
        files = peers.octet_run(octet, network.file, inputs, folder)
        got = [files.get(peers.file_name(name)) for name in names]
        error = compare(network, steps, names, got, fast.run(None, inputs))
        if network.quantized:
            error = min(error, compare(network, steps, names, got, plain.run(None, inputs)))
        worst = max(worst, error)
    if network.quantized:
        return worst <= STEPS_TOLERANCE, f"{worst:9.3f} steps    (at most {STEPS_TOLERANCE:g})"
    return worst <= FLOAT_TOLERANCE, f"{worst:9.2e} relative (at most {FLOAT_TOLERANCE:g})"


def main():
    octet, chosen = sys.argv[1], sys.argv[2:]
    peers.need_shared("check_models")
    count = {"passed": 0, "failed": 0, "skipped": 0}
    print(f"against ONNX Runtime {ort.__version__}, two inputs each")
    with tempfile.TemporaryDirectory() as folder:
        for network in peers.NETWORKS:
            if chosen and network.name not in chosen:
                continue
            if not network.file.exists():
                verdict, text = "skipped", f"{network.file} is not there"
            elif peers.is_saturated(network.name):
                verdict, text = "skipped", "ONNX Runtime's sums saturate on this CPU"
            else:
                try:
                    passed, text = check(octet, network, folder)
                    verdict = "passed" if passed else "failed"
                except (RuntimeError, OSError) as error:
                    verdict, text = "failed", str(error)
            count[verdict] += 1
            print(f"{network.name:32s} {verdict:8s} {text}", flush=True)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
