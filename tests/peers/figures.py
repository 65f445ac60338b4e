# SPDX-License-Identifier: Apache-2.0
"""docs/figures.tsv: what was measured, by name, for the pages; tools/figures puts it there."""

import datetime
import json
import subprocess
from pathlib import Path


def machine(octet, threads):
    """The CPU, its integer kernels and the threads, in a few words."""
    seen = json.loads(subprocess.run([octet, "doctor", "--json"], check=True, capture_output=True,
                                     text=True).stdout)
    return f"{seen['cpu']}, {seen['integer_kernels']}, {threads} threads"


def update(path, values, where, how):
    """Replaces the rows of these names, keeps all others."""
    path = Path(path)
    lines = path.read_text().splitlines() if path.exists() else []
    head = [line for line in lines if line.startswith("#")]
    rows = {line.split("\t")[0]: line for line in lines if line and not line.startswith("#")}
    today = datetime.date.today().isoformat()
    for key, value in values.items():
        rows[key] = "\t".join([key, f"{value:.4f}", today, where, how])
    path.write_text("\n".join(head + [rows[key] for key in sorted(rows)]) + "\n")
