# SPDX-License-Identifier: Apache-2.0
"""What tests share: the demo network, pictures, and the program where it was built."""
import os
import pathlib
import subprocess

import numpy
import octet
import pytest
import tiny

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def demo():
    """The detector of `make demo`, simplified."""
    return octet.load(ROOT / "examples/demo/detector.onnx").simplify()


@pytest.fixture(scope="session")
def program():
    """The program octet, which OCTET_PROGRAM names."""
    path = os.environ.get("OCTET_PROGRAM")
    if not path:
        pytest.skip("OCTET_PROGRAM does not say where the program is")
    return path


@pytest.fixture(scope="session")
def pictures(tmp_path_factory):
    """Labelled pictures: DIR/calib, DIR/val, DIR/val.json."""
    folder = tmp_path_factory.mktemp("pictures")
    octet.synth(folder, "calib", 12)
    octet.synth(folder, "val", 16)
    return folder


@pytest.fixture
def net():
    return octet.load(tiny.convolutions())


@pytest.fixture
def items():
    generator = numpy.random.default_rng(1)
    return [generator.random((1, 3, 16, 16), dtype="float32") for _ in range(6)]


@pytest.fixture
def run_program(program):
    def run(*arguments):
        return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True)

    return run


def pytest_terminal_summary(terminalreporter):
    """The line that .ci/run adds up."""
    n = {k: len(terminalreporter.stats.get(k, ())) for k in ("passed", "failed", "error", "skipped")}
    terminalreporter.write_line(f"{n['passed']} passed, {n['failed'] + n['error']} failed, "
                                f"{n['skipped']} skipped")
