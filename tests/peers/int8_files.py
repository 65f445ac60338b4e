# SPDX-License-Identifier: Apache-2.0
"""The INT8 files that are measured, made once and kept: octet's for itself and for ONNX Runtime,
NNCF's for OpenVINO.

usage: int8_files.py NAME OUT.xml   (NNCF alone, as the other scripts call it)
"""

import os
import subprocess
import sys
from pathlib import Path

import peers

PICTURES = 64
CALIBRATION = {"yolo_nas_bccd_folded": "bccd/images", "mobilenet_v1_0.25_224": "imagenet/val"}
OTHERS = "coco/calib"


def calibration(network):
    return peers.DATA / CALIBRATION.get(network.name, OTHERS)


def pictures(network):
    """As many as octet takes, evenly picked as octet does."""
    files = sorted(p for p in calibration(network).iterdir()
                   if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    count = min(PICTURES, len(files))
    return [files[i * len(files) // count] for i in range(count)]


def make_nncf(name, out):
    """In its own process: NNCF with its defaults on OpenVINO's form of the network."""
    os.environ["NNCF_CI"] = "1"  # or it calls home
    import nncf
    import openvino as ov
    from PIL import Image
    network = peers.by_name(name)

    def read(path):
        return {network.input: network.prepare(Image.open(path).convert("RGB"))}

    model = ov.Core().read_model(network.file)
    if model.is_dynamic():
        model.reshape({network.input: list(read(pictures(network)[0])[network.input].shape)})
    quantized = nncf.quantize(model, nncf.Dataset(pictures(network), read), subset_size=PICTURES)
    ov.save_model(quantized, out, compress_to_fp16=False)


def is_fresh(path, *made_from):
    return path.exists() and all(path.stat().st_mtime > Path(p).stat().st_mtime for p in made_from)


def run(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().split("\n")
        sys.exit(f"int8_files: {said[0] if said[0].startswith('octet') else said[-1]}")


def by_tool(octet, name, folder):
    """The file each tool runs, made where it is missing or older than the program."""
    network = peers.by_name(name)
    folder.mkdir(parents=True, exist_ok=True)
    library = Path(octet).resolve().parent / "liboctet.so"
    program = library if library.exists() else octet
    files = {}
    for tool, target in (("octet", "octet"), ("onnxruntime", "ort")):
        files[tool] = folder / f"{name}.{target}.onnx"
        if not is_fresh(files[tool], program, network.file):
            run([octet, "quantize", network.file, "-o", files[tool], "--target", target,
                 "--images", calibration(network), "--subset-size", PICTURES, "--quiet"])
    files["openvino"] = folder / f"{name}.nncf.xml"
    if not is_fresh(files["openvino"], network.file, __file__):
        run([sys.executable, __file__, name, files["openvino"]])
    return {tool: str(path) for tool, path in files.items()}


if __name__ == "__main__":
    make_nncf(sys.argv[1], sys.argv[2])
