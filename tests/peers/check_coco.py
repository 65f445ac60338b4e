# SPDX-License-Identifier: Apache-2.0
"""Holds `octet score` against pycocotools.

usage: check_coco.py OCTET [--quick]

All twelve numbers within 1e-9: COCO's own example, 20 made-up sets with crowds, tiny areas,
duplicates and equal scores, the results of a real network, and 100 detections in each of the 5,000
pictures of val2017. The last is also timed on one thread, octet (reading the files included)
before and after pycocotools' evaluate + accumulate (reading not included): octet must be at least
20 times faster, and stay below 300 MB. The VOC figure is held against a plain program below.
--quick leaves the large set out. Ends with `N passed, N failed, N skipped`.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import peers

KEYS = ["ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large",
        "ar1", "ar10", "ar100", "ar_small", "ar_medium", "ar_large"]
TOLERANCE = 1e-9
FASTER = 20
MEMORY_MB = 300
N_RANDOM = 20


def octet_score(octet, annotations, results):
    """The twelve numbers (-1: nothing to measure) and everything that octet printed."""
    command = [octet, "score", "--annotations", str(annotations), "--results", str(results),
               "--threads", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip() or f"exit {done.returncode}")
    printed = json.loads(done.stdout)
    return np.array([-1.0 if printed[k] is None else printed[k] for k in KEYS]), printed


def pycoco_score(annotations, results):
    """The twelve numbers, the evaluator, and the seconds of evaluate + accumulate."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(annotations))
        evaluator = COCOeval(truth, truth.loadRes(str(results)), "bbox")
        start = time.perf_counter()
        evaluator.evaluate()
        evaluator.accumulate()
        seconds = time.perf_counter() - start
        evaluator.summarize()
    return evaluator.stats, evaluator, seconds


def per_class(evaluator):
    """AP and AP50 of each category, by id."""
    found = {}
    for k, category in enumerate(evaluator.params.catIds):
        precision = evaluator.eval["precision"][:, :, k, 0, 2]
        found[category] = [-1.0 if (p > -1).sum() == 0 else p[p > -1].mean()
                           for p in (precision, precision[:1])]
    return found


def voc_map50(annotations, results):
    """VOC's rule: each detection wants the label it overlaps most, which only one may have."""
    truth = json.loads(Path(annotations).read_text())
    labels, counts = {}, {}
    for a in truth["annotations"]:
        labels.setdefault((a["image_id"], a["category_id"]), []).append(a)
        if not a.get("iscrowd", 0):
            counts[a["category_id"]] = counts.get(a["category_id"], 0) + 1
    found = {}
    for d in json.loads(Path(results).read_text()):
        found.setdefault((d["category_id"], d["image_id"]), []).append(d)
    aps = []
    for category, n_labels in counts.items():
        ranked = []
        for image in sorted(i for c, i in found if c == category):
            ranked += sorted(found[category, image], key=lambda d: -d["score"])[:100]
        taken, right, wrong, precision = set(), 0, 0, []
        for d in sorted(ranked, key=lambda d: -d["score"]):
            best, at = 0.0, None
            x, y, w, h = d["bbox"]
            for a in labels.get((d["image_id"], category), []):
                ax, ay, aw, ah = a["bbox"]
                iw, ih = min(x + w, ax + aw) - max(x, ax), min(y + h, ay + ah) - max(y, ay)
                overlap = iw * ih / (w * h + aw * ah - iw * ih) if iw > 0 and ih > 0 else 0.0
                if overlap > best:
                    best, at = overlap, a
            if best < 0.5:
                wrong += 1
            elif at.get("iscrowd", 0):
                continue
            elif at["id"] in taken:
                wrong += 1
            else:
                taken.add(at["id"])
                right += 1
                precision.append(right / (right + wrong))
        envelope = np.maximum.accumulate(precision[::-1]) if precision else np.zeros(0)
        aps.append(envelope.sum() / n_labels)
    return float(np.mean(aps)) if aps else -1.0


def compare(octet, annotations, results, voc=True):
    ours, printed = octet_score(octet, annotations, results)
    theirs, evaluator, _ = pycoco_score(annotations, results)
    worst = float(np.max(np.abs(ours - theirs)))
    classes = per_class(evaluator)
    for c in printed["per_class"]:
        got = [-1.0 if c[k] is None else c[k] for k in ("ap", "ap50")]
        worst = max(worst, float(np.max(np.abs(np.array(got) - classes[c["id"]]))))
    text = f"AP {theirs[0]:.3f}, worst difference {worst:.1e}"
    if voc:
        got = -1.0 if printed["voc_map50"] is None else printed["voc_map50"]
        difference = abs(got - voc_map50(annotations, results))
        worst = max(worst, difference)
        text += f", VOC {difference:.1e}"
    return worst <= TOLERANCE, text


def made_up(seed, folder):
    """A small set of everything that is awkward."""
    rng = np.random.default_rng(seed)
    step = [1.0, 0.5, 0.01][seed % 3]
    n_images = int(rng.integers(1, 30))
    images = rng.choice(1000, n_images, replace=False).tolist()
    categories = rng.choice(np.arange(1, 99), int(rng.integers(1, 7)), replace=False).tolist()

    def snapped(values):
        return [round(round(v / step) * step, 6) for v in values]

    def box():
        size = rng.choice([3, 30, 100, 300], 2) * rng.random(2)
        return snapped([*rng.uniform(0, 200, 2), *size])

    labels, results = [], []
    for image in images:
        mine = []
        for _ in range(int(rng.integers(0, 13))):
            b = box()
            area = [b[2] * b[3], b[2] * b[3] * rng.random(), 1024.0, 9216.0, 0.0][rng.integers(5)]
            mine.append({"id": len(labels) + len(mine) + 1, "image_id": image,
                         "category_id": int(rng.choice(categories)), "bbox": b,
                         "area": float(area), "iscrowd": int(rng.random() < 0.15)})
        labels += mine
        for _ in range(int(rng.choice([0, 3, 30, 300]))):
            b, category = box(), int(rng.choice(categories))
            if mine and rng.random() < 0.8:
                a = mine[rng.integers(len(mine))]
                category = a["category_id"]
                moved = a["bbox"] + rng.choice([0, 0, 1, -1], 4) * rng.integers(0, 20, 4) * step
                b = snapped(np.maximum(moved, [-50, -50, 0, 0]))
            score = rng.random()
            results.append({"image_id": image, "category_id": category, "bbox": b,
                            "score": float(round(score, 1) if rng.random() < 0.5 else score)})
    results = [results[i] for i in rng.permutation(len(results))]
    if not results:  # pycocotools refuses an empty list
        results = [{"image_id": images[0], "category_id": categories[0], "bbox": [0, 0, 1, 1],
                    "score": 0.5}]
    annotations = Path(folder) / "made_up.json"
    annotations.write_text(json.dumps({
        "images": [{"id": i, "file_name": f"{i}.jpg"} for i in images],
        "categories": [{"id": c, "name": f"c{c}"} for c in categories], "annotations": labels}))
    path = Path(folder) / "made_up_results.json"
    path.write_text(json.dumps(results))
    return annotations, path


def check_made_up(octet, seed, folder):
    return compare(octet, *made_up(seed, folder))


def plausible(annotations, path, seed=1):
    """100 detections in every picture: 60 near its labels, the others anywhere."""
    rng = np.random.default_rng(seed)
    truth = json.loads(Path(annotations).read_text())
    categories = np.array([c["id"] for c in truth["categories"]])
    labels = {}
    for a in truth["annotations"]:
        labels.setdefault(a["image_id"], []).append((*a["bbox"], a["category_id"]))
    results = []
    for image in truth["images"]:
        size = np.array([image["width"], image["height"]])
        wh = size * rng.random((100, 2)) ** 2
        boxes = np.concatenate([rng.random((100, 2)) * (size - wh), wh], 1)
        category = rng.choice(categories, 100)
        scores = rng.random(100) ** 4
        mine = np.array(labels.get(image["id"], np.zeros((0, 5))))
        if len(mine):
            near = mine[rng.integers(0, len(mine), 60)]
            noise = rng.normal(0, 1, (60, 4)) * 0.15 * rng.random((60, 1))
            boxes[:60, :2] = near[:, :2] + near[:, 2:4] * noise[:, :2]
            boxes[:60, 2:] = near[:, 2:4] * np.exp(noise[:, 2:])
            same = rng.random(60) < 0.9
            category[:60][same] = near[same, 4]
            scores[:60] = rng.random(60) ** 2
        for b, c, s in zip(boxes.round(2).tolist(), category.tolist(), scores.tolist()):
            results.append({"image_id": image["id"], "category_id": c, "bbox": b,
                            "score": round(s, 6)})
    Path(path).write_text(json.dumps(results))


def check_large(octet, folder):
    annotations = peers.DATA / "coco/instances_val2017_rebuilt.json"
    results = Path(folder) / "large.json"
    plausible(annotations, results)
    seconds = [octet_score(octet, annotations, results)[1]["seconds"] for _ in range(2)]
    theirs, _, peer_seconds = pycoco_score(annotations, results)
    for _ in range(2):
        ours, printed = octet_score(octet, annotations, results)
        seconds.append(printed["seconds"])
    worst = float(np.max(np.abs(ours - theirs)))
    ratio = peer_seconds / float(np.median(seconds))
    memory = printed["peak_rss_mb"]
    passed = worst <= TOLERANCE and ratio >= FASTER and memory < MEMORY_MB
    return passed, (f"AP {theirs[0]:.3f}, worst difference {worst:.1e}; octet "
                    f"{np.median(seconds):.2f} s with reading, pycocotools {peer_seconds:.1f} s: "
                    f"{ratio:.0f} times faster; {memory:.0f} MB")


def check_network(octet, folder):
    """What `octet eval` writes is what pycocotools scores, and what it printed itself."""
    annotations = peers.DATA / "coco/instances_val320.json"
    results = Path(folder) / "network.json"
    command = [octet, "eval", str(peers.by_name("nanodet_m_416").file), "--images",
               str(peers.DATA / "coco/val"), "--annotations", str(annotations), "--results",
               str(results), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip() or f"exit {done.returncode}")
    printed = json.loads(done.stdout)
    passed, text = compare(octet, annotations, results)
    itself = max(abs(printed[k] - v) for k, v in
                 zip(KEYS, octet_score(octet, annotations, results)[0]) if printed[k] is not None)
    return passed and itself <= TOLERANCE, f"{text}; octet eval itself {itself:.1e}"


def main():
    octet = os.path.abspath(sys.argv[1])
    peers.need_shared("check_coco")
    oracle = peers.DATA / "coco/oracle"
    n_failed = 0
    with tempfile.TemporaryDirectory() as folder:
        jobs = [("COCO's example", lambda: compare(
            octet, oracle / "instances_val2014_100_gt.json",
            oracle / "instances_val2014_fakebbox100_results.json"))]
        jobs += [(f"made up, seed {seed}", lambda seed=seed: check_made_up(octet, seed, folder))
                 for seed in range(N_RANDOM)]
        jobs += [("nanodet_m on val320", lambda: check_network(octet, folder))]
        if "--quick" not in sys.argv:
            jobs += [("5,000 x 100 detections", lambda: check_large(octet, folder))]
        for name, job in jobs:
            try:
                passed, text = job()
            except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
                passed, text = False, str(error)
            n_failed += not passed
            print(f"{name:24s} {'passed' if passed else 'failed':8s} {text}", flush=True)
    print(f"{len(jobs) - n_failed} passed, {n_failed} failed, 0 skipped")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
