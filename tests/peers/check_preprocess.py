# SPDX-License-Identifier: Apache-2.0
"""Holds octet's preprocessing against Pillow and OpenCV on 20 real pictures.

usage: check_preprocess.py PREPROCESS

PREPROCESS is the build's tests/preprocess. Each way to fit a picture, with both interpolations: no
value more than one grey level from the original's. Ends with `N passed, N failed, N skipped`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

import peers

N_IMAGES = 20


def pillow_read(path):
    return np.asarray(Image.open(path).convert("RGB"))


def pillow_resize(rgb, w, h):
    return np.asarray(Image.fromarray(rgb).resize((w, h), Image.BILINEAR))


def opencv_read(path):
    return cv2.imread(str(path), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)[:, :, ::-1]


def opencv_resize(rgb, w, h):
    return cv2.resize(np.ascontiguousarray(rgb), (w, h), interpolation=cv2.INTER_LINEAR)


def letterbox(rgb, w, h, resize, centred=True):
    ratio = min(w / rgb.shape[1], h / rgb.shape[0])
    new_w, new_h = round(rgb.shape[1] * ratio), round(rgb.shape[0] * ratio)
    x, y = ((w - new_w) // 2, (h - new_h) // 2) if centred else (0, 0)
    canvas = np.full((h, w, 3), 114, np.uint8)
    canvas[y:y + new_h, x:x + new_w] = resize(rgb, new_w, new_h)
    return canvas


def top_left(rgb, w, h, resize):
    return letterbox(rgb, w, h, resize, centred=False)


def stretch(rgb, w, h, resize):
    return resize(rgb, w, h)


def crop(rgb, w, h, resize):
    ratio = max(w, h) / 0.875 / min(rgb.shape[:2])
    new_w, new_h = max(w, round(rgb.shape[1] * ratio)), max(h, round(rgb.shape[0] * ratio))
    x, y = (new_w - w) // 2, (new_h - h) // 2
    return resize(rgb, new_w, new_h)[y:y + h, x:x + w]


FITS = {"letterbox": letterbox, "letterbox_top_left": top_left, "stretch": stretch, "crop": crop}
SIZES = {"letterbox": (640, 640), "letterbox_top_left": (416, 416), "stretch": (416, 320),
         "crop": (224, 224)}
READERS = {"antialias": (pillow_read, pillow_resize), "linear": (opencv_read, opencv_resize)}


def octet(program, words, images):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.npy"
        subprocess.run([program, words, str(out)] + [str(i) for i in images], check=True,
                       timeout=600)
        return np.load(out)


def check(program, fit, interpolation, images):
    w, h = SIZES[fit]
    read, resize = READERS[interpolation]
    words = f"size={w}x{h},fit={fit},interpolation={interpolation},scale=1,layout=nhwc"
    got = octet(program, words, images)
    worst, off = 0.0, 0.0
    for mine, path in zip(got, images):
        difference = np.abs(mine - FITS[fit](read(path), w, h, resize).astype(np.float32))
        worst = max(worst, float(difference.max()))
        off = max(off, float((difference > 0).mean()))
    return worst <= 1, f"{worst:.0f} grey levels at most, {100 * off:.2f} % not equal at worst"


def check_arithmetic(program, images):
    """Colour order, scale, mean, std and layout, against NumPy in double precision."""
    words = "size=416x416,fit=stretch,color=bgr,scale=255,mean=.406:.456:.485,std=.225:.224:.229"
    got = octet(program, words, images)
    want = np.stack([stretch(pillow_read(i), 416, 416, pillow_resize)[:, :, ::-1] for i in images])
    std = np.array([.225, .224, .229])
    want = (want / 255.0 - [.406, .456, .485]) / std
    levels = (np.abs(got.transpose(0, 2, 3, 1) - want) * std * 255).max()
    return levels <= 1.001, f"{levels:.3f} grey levels at most"


def main():
    program = sys.argv[1]
    peers.need_shared("check_preprocess")
    files = sorted((peers.DATA / "coco/val").glob("*.jpg"))
    images = files[::len(files) // N_IMAGES][:N_IMAGES]
    jobs = [(f"{interpolation}, {fit}", lambda f=fit, i=interpolation: check(program, f, i, images))
            for interpolation in READERS for fit in FITS]
    jobs.append(("mean, std, order", lambda: check_arithmetic(program, images)))
    n_failed = 0
    for name, job in jobs:
        try:
            passed, text = job()
        except (subprocess.CalledProcessError, OSError) as error:
            passed, text = False, str(error)
        n_failed += not passed
        print(f"{name:32s} {'passed' if passed else 'failed':8s} {text}", flush=True)
    print(f"{len(jobs) - n_failed} passed, {n_failed} failed, 0 skipped")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
