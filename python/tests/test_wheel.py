# SPDX-License-Identifier: Apache-2.0
"""The wheel by itself: in an environment that has nothing but it and numpy."""
import os
import pathlib
import subprocess
import sys
import zipfile

import numpy
import pytest

# Libraries that every Linux has (the policy of manylinux); all others come with the wheel.
SYSTEM = ("ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libgcc_s.so",
          "libstdc++.so", "libz.so", "libutil.so")


@pytest.fixture(scope="module")
def wheel():
    """The wheel, which OCTET_WHEEL names."""
    path = os.environ.get("OCTET_WHEEL")
    if not path:
        pytest.skip("OCTET_WHEEL does not say where the wheel is")
    return pathlib.Path(path)


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory):
    """Runs Python in an environment of its own, as installed by pip; numpy is this one's."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps",
                    "--no-index", "--disable-pip-version-check", wheel], check=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for part in pathlib.Path(numpy.__file__).parents[1].glob("numpy*"):
        (site / part.name).symlink_to(part)

    def run(code, *arguments):
        done = subprocess.run([python, "-I", "-c", code, *map(str, arguments)], env={}, cwd=folder,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run.site = site
    return run


QUANTIZE = """
import sys
import octet
octet.quantize(octet.load(sys.argv[1]), sys.argv[2]).save(sys.argv[3])
"""


def test_quantizes_the_demo_as_the_program_does(clean, demo, pictures, run_program, tmp_path):
    model = tmp_path / "fp32.onnx"
    demo.save(model)
    clean(QUANTIZE, model, pictures / "calib", tmp_path / "py.onnx")
    run_program("quantize", model, "-o", tmp_path / "c.onnx", "--images", pictures / "calib")
    assert (tmp_path / "py.onnx").read_bytes() == (tmp_path / "c.onnx").read_bytes()


MAPPED = """
def mapped():
    with open("/proc/self/maps") as f:
        return {line.split(None, 5)[5].strip() for line in f if ".so" in line}
import numpy, random, tempfile
before = mapped()
import octet
print(*sorted(mapped() - before), sep="\\n")
"""


def test_brings_its_libraries(clean):
    loaded = clean(MAPPED).split("\n")[:-1]
    assert any("_octet" in path for path in loaded) and any("dnnl" in path for path in loaded)
    assert not [p for p in loaded if not p.startswith(str(clean.site)) and
                not os.path.basename(p).startswith(SYSTEM) and "/lib-dynload/" not in p]


def test_works_without_numpy(clean):
    out = clean("import sys; sys.modules['numpy'] = None\n"
                "import octet\n"
                "x = octet.empty((2, 3), 'int8')\n"
                "memoryview(x).cast('B')[5] = 7\n"
                "print(type(x).__name__, memoryview(x).tolist())\n")
    assert out == "Tensor [[0, 0, 0], [0, 0, 7]]\n"


def test_is_for_all_versions_of_python(wheel):
    assert "-cp39-abi3-manylinux" in wheel.name
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        about = z.read(next(n for n in names if n.endswith("/WHEEL"))).decode()
        needs = z.read(next(n for n in names if n.endswith("/METADATA"))).decode()
    assert "Tag: cp39-abi3-manylinux" in about and "Requires-Python: >=3.9" in needs
    assert "octet/_octet.abi3.so" in names and "octet/py.typed" in names
    assert "octet/_octet.pyi" in names and not [n for n in names if n.endswith((".a", ".h"))]
