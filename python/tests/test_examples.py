# SPDX-License-Identifier: Apache-2.0
"""The examples run. Those that need PyTorch or nbclient are skipped without."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import octet
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/python"


BORROW = "import runpy, sys; sys.path.append(sys.argv.pop(1)); runpy.run_path(sys.argv.pop(1))"


def test_scripts_for_nncf_run_with_another_import(tmp_path):
    """With PyTorch of this environment, or of the Python that OCTET_TORCH names."""
    python = os.environ.get("OCTET_TORCH")
    if not python:
        pytest.importorskip("torch")
    site = pathlib.Path(octet.__file__).parents[1]
    done = subprocess.run([python or sys.executable, "-c", BORROW, site, EXAMPLES / "nncf_like.py",
                           tmp_path / "out.onnx"], check=True, capture_output=True, text=True)
    assert "layers" in done.stdout and (tmp_path / "out.onnx").stat().st_size


def test_detectors_are_quantized_in_part(demo, pictures, tmp_path):
    demo.save(tmp_path / "fp32.onnx")
    done = subprocess.run([sys.executable, EXAMPLES / "yolo_nas.py", tmp_path / "fp32.onnx",
                           pictures / "val", pictures / "val.json", "/stem/conv3/Conv"],
                          check=True, capture_output=True, text=True)
    assert "selective" in done.stdout and done.stdout.count("AP50") == 3


def test_cells_of_the_notebook_run(monkeypatch):
    """Without Jupyter too: cells are Python, and what the last line shows has a form in HTML."""
    if all(importlib.util.find_spec(n) for n in ("nbclient", "ipykernel")):
        pytest.skip("the next test runs them in Jupyter")
    notebook = json.loads((EXAMPLES / "demo.ipynb").read_text())
    monkeypatch.chdir(EXAMPLES)
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["after"]["ap"] > 0.5 and "<table>" in names["q"]._repr_html_()
    assert os.path.exists(names["page"].path)


def test_the_notebook_runs_in_jupyter():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(EXAMPLES / "demo.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300,
                            resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    shown = ["".join(o["data"]["text/html"]) for c in notebook.cells for o in c.get("outputs", ())
             if "text/html" in o.get("data", {})]
    for words in ("<b>demo</b>", "layers are INT8", "AP50", "error alone", "<iframe"):
        assert any(words in text for text in shown), words
