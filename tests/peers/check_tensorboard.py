# SPDX-License-Identifier: Apache-2.0
"""Reads an event file of octet's with TensorBoard's own reader.

usage: check_tensorboard.py TRAIN_FILES

TRAIN_FILES is the build's tests/train_files. Scalars, steps and pictures must be those that were
written, and a file that was cut off must give its whole records. Ends with `N passed, N failed,
N skipped`.
"""

import io
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

WIDTH, HEIGHT, N_STEPS = 5, 4, 10


def write(program, folder, kind):
    """The event file, and the bytes of the picture in it."""
    rgb = (np.arange(WIDTH * HEIGHT * 3) * 4 % 256).astype(np.uint8).reshape(HEIGHT, WIDTH, 3)
    picture = folder / f"picture.{kind}"
    Image.fromarray(rgb).save(picture)
    done = subprocess.run([program, "events", str(folder / "run" / kind), str(picture), str(WIDTH),
                           str(HEIGHT)], check=True, capture_output=True, text=True, timeout=60)
    return Path(done.stdout.strip()), picture.read_bytes()


def load(path):
    accumulator = EventAccumulator(str(path), size_guidance={"scalars": 0, "images": 0})
    accumulator.Reload()
    return accumulator


def check_scalars(program, folder):
    path, _ = write(program, folder, "png")
    events = load(path)
    if sorted(events.Tags()["scalars"]) != ["loss/total", "rate"]:
        return False, f"tags {events.Tags()['scalars']}"
    for tag, value in (("loss/total", lambda i: 1 / (i + 1)), ("rate", lambda i: -i / 4)):
        got = [(e.step, e.value) for e in events.Scalars(tag)]
        if got != [(1000 * i, float(np.float32(value(i)))) for i in range(N_STEPS)]:
            return False, f"{tag}: {got}"
    times = [e.wall_time for e in events.Scalars("rate")]
    return times == sorted(times) and times[0] > 1.7e9, f"2 tags, {N_STEPS} steps each"


def check_pictures(program, folder):
    for kind in ("png", "jpg"):
        path, data = write(program, folder, kind)
        (image,) = load(path).Images("batch")
        if (image.width, image.height, image.step) != (WIDTH, HEIGHT, 3):
            return False, f"{kind}: {image.width}x{image.height} at step {image.step}"
        if image.encoded_image_string != data:
            return False, f"{kind}: other bytes"
        if Image.open(io.BytesIO(image.encoded_image_string)).size != (WIDTH, HEIGHT):
            return False, f"{kind}: cannot be decoded"
    return True, "PNG and JPEG"


def check_torn(program, folder):
    path, _ = write(program, folder, "png")
    torn = folder / f"torn.{path.name}"
    torn.write_bytes(path.read_bytes()[:-20])  # within the picture's record
    events = load(torn)
    n = len(events.Scalars("rate"))
    return n == N_STEPS and not events.Tags()["images"], f"{n} steps of a file that was cut off"


def main():
    program = sys.argv[1]
    jobs = {"scalars": check_scalars, "pictures": check_pictures, "cut off": check_torn}
    n_failed = 0
    for what, job in jobs.items():
        with tempfile.TemporaryDirectory() as folder:
            passed, text = job(program, Path(folder))
        n_failed += not passed
        print(f"tensorboard, {what:19s} {'passed' if passed else 'failed':8s} {text}", flush=True)
    print(f"{len(jobs) - n_failed} passed, {n_failed} failed, 0 skipped")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
