# SPDX-License-Identifier: Apache-2.0
"""Reads what detectors put out, independently of octet: boxes and scores, then suppression.

A decoder takes a network's outputs for one picture and gives corners [n, 4] in the network's input
and scores [n, classes].
"""

import numpy as np

SCORE, IOU, MAX_DETECTIONS = 0.01, 0.65, 100  # the defaults of `octet eval`


def cells_of(size, stride):
    """The column and row of every cell, row by row."""
    n = -(-size // stride)
    y, x = np.mgrid[:n, :n]
    return np.stack([x.ravel(), y.ravel()], 1).astype(np.float32)


def from_centre(centre, size):
    return np.concatenate([centre - size / 2, centre + size / 2], 1)


def yolov8(outputs, size):
    o = outputs[0][0].T
    return from_centre(o[:, :2], o[:, 2:4]), o[:, 4:]


def yolox(outputs, size):
    o = outputs[0][0]
    strides = [np.full((len(cells_of(size, s)), 1), s, np.float32) for s in (8, 16, 32)]
    cells = np.concatenate([cells_of(size, s) for s in (8, 16, 32)])
    stride = np.concatenate(strides)
    boxes = from_centre((o[:, :2] + cells) * stride, np.exp(o[:, 2:4]) * stride)
    return boxes, o[:, 4:5] * o[:, 5:]


def distances_to_boxes(distances, size, stride, shift):
    """Distributions over the distances left, top, right, bottom, counted in strides."""
    bins = distances.reshape(len(distances), 4, -1)
    weights = np.exp(bins - bins.max(2, keepdims=True))
    mean = weights @ np.arange(bins.shape[2], dtype=np.float32) / weights.sum(2) * stride
    centre = (cells_of(size, stride) + 0.5) * stride + shift
    return np.concatenate([centre - mean[:, :2], centre + mean[:, 2:]], 1)


def levels(outputs, size, shift):
    """One output of scores and one of distances for every stride; scores come first."""
    half = len(outputs) // 2
    boxes, scores = [], []
    for i in range(half):
        boxes.append(distances_to_boxes(outputs[half + i][0], size, 8 << i, np.float32(shift)))
        scores.append(outputs[i][0])
    return np.concatenate(boxes), np.concatenate(scores)


def picodet(outputs, size):
    return levels(outputs, size, 0)


def nanodet(outputs, size):
    return levels(outputs, size, -0.5)


def yolo_nas(outputs, size):
    return outputs[0][0], outputs[1][0]


def overlaps(box, others):
    """Intersection over union of one box with many."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    both = np.prod(np.maximum(high - low, 0), axis=1)
    area = np.prod(others[:, 2:] - others[:, :2], axis=1)
    return both / np.maximum(np.prod(box[2:] - box[:2]) + area - both, 1e-12)


def suppress(boxes, classes):
    """Indices of what stays, of boxes that come best first."""
    alive = np.ones(len(boxes), bool)
    kept = []
    for i in range(len(boxes)):
        if not alive[i]:
            continue
        kept.append(i)
        if len(kept) == MAX_DETECTIONS:
            break
        rivals = i + 1 + np.flatnonzero(classes[i + 1:] == classes[i])
        alive[rivals[overlaps(boxes[i], boxes[rivals]) > IOU]] = False
    return kept


def to_picture(boxes, place, width, height):
    """From the network's input to the picture's pixels, clipped."""
    x, y, w, h = place
    offset = np.array([x, y, x, y], np.float32)
    scale = np.array([w / width, h / height] * 2, np.float32)
    return np.clip((boxes - offset) / scale, 0, np.array([width, height] * 2, np.float32))


def detect(boxes, scores, place, width, height):
    """The detections of one picture: (x, y, width, height) in its pixels, score, class."""
    anchors, classes = np.nonzero(scores > SCORE)
    score = scores[anchors, classes]
    order = np.argsort(-score, kind="stable")
    anchors, classes, score = anchors[order], classes[order], score[order]
    boxes = boxes[anchors]
    placed = to_picture(boxes, place, width, height)
    good = np.isfinite(boxes).all(1) & np.isfinite(score)
    good &= (boxes[:, 2:] > boxes[:, :2]).all(1) & (placed[:, 2:] > placed[:, :2]).all(1)
    boxes, placed, classes, score = (a[good] for a in (boxes, placed, classes, score))
    kept = suppress(boxes, classes)
    placed[:, 2:] -= placed[:, :2]
    return placed[kept], score[kept], classes[kept]
