# SPDX-License-Identifier: Apache-2.0
"""Writes networks as OpenVINO IR and runs them in OpenVINO, beside ONNX Runtime on the ONNX file.

usage: check_openvino.py OCTET [--quick]

Float networks, also with --half: within 1e-4 (half: 2e-2) of the output's largest magnitude. INT8
networks for target openvino: as many convolutions in INT8 as OpenVINO makes of the ONNX file of the
same network, and the same answers as from that file. A network in the form QOperator, which OpenVINO
cannot read from ONNX, gives ONNX Runtime's class from octet's IR (in float: its weights have zero
points, which OpenVINO's integer layers have not). Recurrent networks, as IR that OpenVINO makes of ONNX
read by octet and as octet's IR in OpenVINO: within 1e-5 of ONNX Runtime. --quick: one network.
One line for each file, then `N passed, N failed, N skipped`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import openvino

import peers
import recurrent

FLOAT = ("yolov8n", "mobilenet_v1_0.25_224", "nanodet_m_416", "picodet_s_416", "yolox_nano_416")
Q_OPERATOR = "mobilenetv2_qoperator"
LAYERS = ("Convolution", "GroupConvolution", "Deconvolution", "FullyConnected")


def octet(program, *words):
    run = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip())


def numbers(session):
    rng = np.random.default_rng(3)
    return {i.name: rng.random([d if isinstance(d, int) else 1 for d in i.shape], np.float32)
            for i in session.get_inputs()}


def compiled(path):
    core = openvino.Core()
    return core.compile_model(core.read_model(str(path)), "CPU",
                              {"INFERENCE_PRECISION_HINT": "f32"})


def answers(network, inputs, names):
    result = network(inputs)
    return [result[network.output(n)] for n in names]


def worst(got, want):
    return max(float(np.max(np.abs(g - w))) / (float(np.max(np.abs(w))) or 1.0)
               for g, w in zip(got, want))


def in_integers(network):
    """Layers with weights that are computed in INT8."""
    kinds = [op.get_rt_info() for op in network.get_runtime_model().get_ops()]
    return sum("I8" in str(k["primitiveType"].value) for k in kinds
               if str(k["layerType"].value) in LAYERS)


def check_float(program, model, folder):
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    inputs, names = numbers(session), [o.name for o in session.get_outputs()]
    want = session.run(None, inputs)
    for option, limit in ((), 1e-4), (("--half",), 2e-2):
        octet(program, "export", model, "-o", folder / "float.xml", "--force", *option)
        error = worst(answers(compiled(folder / "float.xml"), inputs, names), want)
        if not error <= limit:
            return f"differs by {error:.2g}{' with --half' if option else ''}"
    return None


def check_integers(program, model, images, folder):
    octet(program, "quantize", model, "-o", folder / "int8.onnx", "--target", "openvino",
          "--images", images, "--limit", 8, "--force")
    octet(program, "export", folder / "int8.onnx", "-o", folder / "int8.xml", "--force")
    session = ort.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    inputs, names = numbers(session), [o.name for o in session.get_outputs()]
    own, theirs = compiled(folder / "int8.xml"), compiled(folder / "int8.onnx")
    if in_integers(own) < in_integers(theirs):
        return f"{in_integers(own)} layers in INT8, {in_integers(theirs)} of the ONNX file"
    error = worst(answers(own, inputs, names), answers(theirs, inputs, names))
    spread = worst(answers(theirs, inputs, names), session.run(None, inputs))
    if not error <= max(1e-3, 0.5 * spread):  # a tie that rounds otherwise spreads
        return f"differs by {error:.2g} from the ONNX file, which is {spread:.2g} from float"
    return None


def check_q_operators(program, network, folder):
    octet(program, "export", network.file, "-o", folder / "q.xml", "--force")
    session = ort.InferenceSession(str(network.file), providers=["CPUExecutionProvider"])
    inputs = peers.inputs_of(network, 1)[0]
    want, got = session.run(None, inputs)[0], compiled(folder / "q.xml")(inputs)[0]
    if want.argmax() != got.argmax():
        return f"class {got.argmax()}, not {want.argmax()}"
    return None


def check_recurrent(program, model, writes, folder):
    inputs = {"x": recurrent.numbers(recurrent.STEPS, recurrent.BATCH, recurrent.INPUT)}
    onnx.save(model, str(folder / "net.onnx"))
    session = ort.InferenceSession(str(folder / "net.onnx"), providers=["CPUExecutionProvider"])
    names, want = [o.name for o in session.get_outputs()], session.run(None, inputs)
    openvino.save_model(openvino.convert_model(folder / "net.onnx"), folder / "theirs.xml",
                        compress_to_fp16=False)
    got = peers.octet_run(program, folder / "theirs.xml", inputs, folder)
    error = worst([got[peers.file_name(n)] for n in names], want)
    if not error <= 1e-5:
        return f"read by octet differs by {error:.2g}"
    if writes:
        octet(program, "export", folder / "net.onnx", "-o", folder / "own.xml", "--force")
        error = worst(answers(compiled(folder / "own.xml"), inputs, names), want)
    return None if error <= 1e-5 else f"written by octet differs by {error:.2g}"


def check_cell(program, model, folder):
    inputs = {p.any_name: recurrent.numbers(*p.shape) for p in model.inputs}
    openvino.save_model(model, folder / "cell.xml", compress_to_fp16=False)
    names = [p.any_name for p in model.outputs]
    want = answers(compiled(folder / "cell.xml"), inputs, names)
    got = peers.octet_run(program, folder / "cell.xml", inputs, folder)
    error = worst([got[peers.file_name(n)] for n in names], want)
    return None if error <= 1e-5 else f"differs by {error:.2g}"


def jobs_of(program, quick, folder):
    """Name of each check and what does it."""
    networks = [(n, peers.DATA / "models" / f"{n}.onnx", peers.DATA / "coco" / "calib")
                for n in FLOAT]
    networks.append(("yolo_nas_bccd_folded",
                     peers.DATA / "yolo-nas" / "yolo_nas_bccd_folded.onnx",
                     peers.DATA / "bccd" / "images"))
    for name, model, images in networks[-1:] if quick else networks:
        yield f"{name} float", lambda: check_float(program, model, folder)
        yield f"{name} INT8", lambda: check_integers(program, model, images, folder)
    for name, model, writes in recurrent.networks():
        yield name, lambda: check_recurrent(program, model, writes, folder)
    for name, model in recurrent.cells():
        yield name, lambda: check_cell(program, model, folder)
    if not quick:
        yield Q_OPERATOR, lambda: check_q_operators(program, peers.by_name(Q_OPERATOR), folder)


def main():
    program, quick = sys.argv[1], "--quick" in sys.argv
    passed = failed = 0

    peers.need_shared("check_openvino")
    with tempfile.TemporaryDirectory() as folder:
        for name, check in jobs_of(program, quick, Path(folder)):
            try:
                why = check()
            except RuntimeError as error:
                why = str(error)
            passed += why is None
            failed += why is not None
            print(f"{'ok' if why is None else 'FAILED'} {name}{': ' + why if why else ''}", flush=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)


main()
