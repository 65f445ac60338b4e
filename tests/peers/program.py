# SPDX-License-Identifier: Apache-2.0
"""octet as the scripts that measure accuracy and time call it."""

import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.02


@dataclass
class Run:
    """A program that has ended well."""
    text: str
    seconds: float
    peak_mb: float

    @property
    def json(self):
        return json.loads(self.text)


def peak_mb(pid):
    """The most memory a process has had so far, or 0 when it is gone.

    Not the ru_maxrss of a child: that one starts from what its parent had.
    """
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 / 1e6 if found else 0


def measured(command):
    """Runs a program; time and memory as seen from outside. RuntimeError: what it complained of."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start, peak = time.perf_counter(), 0
        process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=err)
        try:
            while process.poll() is None:
                peak = max(peak, peak_mb(process.pid))
                time.sleep(POLL_SECONDS)
        except BaseException:
            process.kill()
            process.wait()
            raise
        seconds = time.perf_counter() - start
        out.seek(0)
        err.seek(0)
        text, complaint = out.read(), err.read()
    if process.returncode:
        said = (complaint or text).strip().split("\n")
        # octet says it first, Python last.
        reason = next((s for s in said if s.startswith("octet")), said[-1])
        raise RuntimeError(reason or f"exit {process.returncode}")
    return Run(text, seconds, peak)


class Octet:
    def __init__(self, path, threads):
        self.path = os.path.abspath(path)
        self.threads = threads

    def run(self, *words):
        return measured([self.path, *words, "--threads", self.threads, "--json", "--quiet"])

    def eval(self, model, task, qmap=None, in_float=False):
        """AP or top-1, and the run."""
        how = (["--qmap", qmap] if qmap else []) + ["--in-float"] * in_float
        run = self.run("eval", model, "--images", task.folder, "--annotations", task.annotations,
                       *how)
        return run.json[task.metric], run

    def score(self, task, results):
        return self.run("score", "--annotations", task.annotations, "--results", results).json["ap"]

    def quantize(self, model, out, images, target="octet", qmap=None):
        saved = ["--save-qmap", qmap] if qmap else []
        return self.run("quantize", model, "-o", out, "--target", target, "--images", images,
                        *saved)
