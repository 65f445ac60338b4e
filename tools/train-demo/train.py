# SPDX-License-Identifier: Apache-2.0
"""Trains the demo's detector on pictures of `octet synth`; see README.md."""
import argparse
import copy
import glob
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from PIL import Image

from loss import detector_loss
from model import Detector

MAX_OBJECTS = 8


def load(prefix, threads):
    """All series PREFIX*.json with their folders of pictures: bytes, labels, boxes, which count."""
    names, labels, boxes = [], [], []
    for path in sorted(glob.glob(prefix + "*.json")):
        with open(path) as f:
            coco = json.load(f)
        row = {im["id"]: i + len(names) for i, im in enumerate(coco["images"])}
        names += [os.path.join(path[:-len(".json")], im["file_name"]) for im in coco["images"]]
        labels += [[] for _ in row]
        boxes += [[] for _ in row]
        for a in coco["annotations"]:
            x, y, w, h = a["bbox"]
            labels[row[a["image_id"]]].append(a["category_id"] - 1)
            boxes[row[a["image_id"]]].append([x, y, x + w, y + h])
    if not names:
        raise SystemExit(f"{prefix}*.json: nothing there")
    size = Image.open(names[0]).size
    pixels = np.empty((len(names), 3, size[1], size[0]), np.uint8)

    def decode(i):
        pixels[i] = np.asarray(Image.open(names[i]).convert("RGB")).transpose(2, 0, 1)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(decode, range(len(names)), chunksize=64))
    label = np.zeros((len(names), MAX_OBJECTS), np.int64)
    box = np.zeros((len(names), MAX_OBJECTS, 4), np.float32)
    valid = np.zeros((len(names), MAX_OBJECTS), bool)
    for i, (ls, bs) in enumerate(zip(labels, boxes)):
        label[i, :len(ls)], valid[i, :len(ls)] = ls, True
        box[i, :len(bs)] = np.reshape(bs, (-1, 4))
    return [torch.from_numpy(a) for a in (pixels, label, box, valid)]


def turn(x, box, generator):
    """Each picture mirrored and turned by quarters at random: shapes have no upright."""
    size = x.shape[-1]
    pick = torch.rand(3, x.shape[0], 1, 1, 1, device=x.device, generator=generator) < 0.5
    x = torch.where(pick[0], x.flip(3), x)
    x = torch.where(pick[1], x.flip(2), x)
    x = torch.where(pick[2], x.transpose(2, 3), x)
    m = pick[..., 0, 0]
    box = torch.where(m[0].unsqueeze(-1), torch.stack(
        [size - box[..., 2], box[..., 1], size - box[..., 0], box[..., 3]], -1), box)
    box = torch.where(m[1].unsqueeze(-1), torch.stack(
        [box[..., 0], size - box[..., 3], box[..., 2], size - box[..., 1]], -1), box)
    box = torch.where(m[2].unsqueeze(-1), box[..., [1, 0, 3, 2]], box)
    return x, box


def letterbox(x, box, valid, rows):
    """As a wide picture arrives at the network: grey above and below."""
    size = x.shape[-1]
    x[:, :, :rows], x[:, :, size - rows:] = 114, 114
    area = (box[..., 2:] - box[..., :2]).prod(-1)
    box = torch.cat([box[..., :1], box[..., 1:2].clamp(rows, size - rows), box[..., 2:3],
                     box[..., 3:].clamp(rows, size - rows)], -1)
    return x, box, valid & ((box[..., 2:] - box[..., :2]).prod(-1) > 0.3 * area)


def layout(device):
    return torch.channels_last if device == "cuda" else torch.contiguous_format


def to_input(x):
    return (x.float() / 255).to(memory_format=layout(x.device.type))


@torch.no_grad()
def validate(model, data, device, batch):
    model.eval()
    total = 0.0
    for i in range(0, len(data[0]), batch):
        x, label, box, valid = [d[i:i + batch].to(device) for d in data]
        total += detector_loss(model.levels(to_input(x)), label, box, valid).item() * len(x)
    return total / len(data[0])


class Trainer:
    """One step: forward, loss, backward, weights, their moving average."""

    def __init__(self, model, device, decay):
        self.model, self.device = model, device
        self.ema = copy.deepcopy(model).eval()
        self.rate = torch.tensor(0.0, device=device)
        self.keep = torch.tensor(0.0, device=device)
        on_gpu = device == "cuda"
        groups = [{"params": [w for w in model.parameters() if w.ndim > 1], "weight_decay": decay},
                  {"params": [w for w in model.parameters() if w.ndim <= 1], "weight_decay": 0}]
        self.optimizer = torch.optim.AdamW(groups, lr=self.rate, fused=on_gpu, capturable=on_gpu)
        self.now = [v for v in model.state_dict().values() if v.is_floating_point()]
        self.old = [v for v in self.ema.state_dict().values() if v.is_floating_point()]
        self.graph = self.inputs = self.loss = None

    def plain_step(self, x, label, box, valid):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda",
                            cache_enabled=False):
            levels = self.model.levels(to_input(x))
        loss = detector_loss(levels, label, box, valid)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 10)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_mul_(self.old, self.keep)
            torch._foreach_add_(self.old, torch._foreach_mul(self.now, 1 - self.keep))
        return loss.detach()

    def record(self, batch):
        """So small a network waits for its launches: a graph of them runs twice as fast."""
        self.inputs = [b.clone() for b in batch]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                self.plain_step(*self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = self.plain_step(*self.inputs)

    def step(self, batch, rate, keep):
        self.rate.fill_(rate)
        self.keep.fill_(keep)
        self.model.train()
        if self.device != "cuda":
            return self.plain_step(*batch)
        if not self.graph:
            self.record(batch)
        for to, b in zip(self.inputs, batch):
            to.copy_(b)
        self.graph.replay()
        return self.loss.clone()


def fetch(data, index, step, generator):
    """A batch, turned; every 16th with grey edges."""
    x, label, box, valid = [d[index] for d in data]
    x, box = turn(x, box, generator)
    if step % 16 == 0:
        rows = int(torch.randint(8, x.shape[-1] // 4, (1,)))
        x, box, valid = letterbox(x, box, valid, rows)
    return x, label, box, valid


def train(a, trainer, data, val):
    generator = torch.Generator(trainer.device).manual_seed(a.seed)
    n, device = len(data[0]), trainer.device
    n_steps = min(n // a.batch * a.epochs, a.limit or 1 << 40)
    begin, step, shown, losses = time.time(), 0, time.time(), []
    progress = 0.0
    while progress < 1:
        order = torch.randperm(n, device=device, generator=generator)
        for i in range(0, n - a.batch + 1, a.batch):
            rate = a.rate * (0.01 + 0.99 * (1 + np.cos(np.pi * progress)) / 2)
            losses.append(trainer.step(fetch(data, order[i:i + a.batch], step, generator),
                                       rate * min(1, (step + 1) / 500),
                                       min(0.9998, (1 + step) / (100 + step))))
            step += 1
            progress = step / n_steps
            if a.minutes:
                progress = max(progress, (time.time() - begin) / (60 * a.minutes))
            if progress >= 1:
                break
            if step % 50 == 0:
                torch.stack(losses[-1:]).item()  # time runs with the work, not ahead of it
        if time.time() - shown > 20 or progress >= 1:
            loss = torch.stack(losses).mean().item()
            shown = time.time()
            print(f"step {step}/{n_steps} ({progress:.0%}), {shown - begin:.0f} s, loss {loss:.4f}"
                  f", on other pictures {validate(trainer.ema, val, device, 250):.4f}", flush=True)
            torch.save(trainer.ema.state_dict(), a.out)
        losses = []


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--train", required=True, help="PREFIX of PREFIX*.json and PREFIX*/")
    p.add_argument("--val", required=True, help="likewise")
    p.add_argument("--out", required=True, help="weights to write")
    p.add_argument("--epochs", type=int, default=100)
    p.add_argument("--batch", type=int, default=192)
    p.add_argument("--rate", type=float, default=3e-3, help="highest learning rate")
    p.add_argument("--decay", type=float, default=0.02, help="of weights")
    p.add_argument("--limit", type=int, default=0, help="steps, to try things out")
    p.add_argument("--minutes", type=float, default=0, help="shorten the schedule to end by then")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(a.seed)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    begin = time.time()
    data = [d.to(device) for d in load(a.train, os.cpu_count())]
    val = load(a.val, os.cpu_count())
    print(f"{len(data[0])} pictures to train on, {len(val[0])} to check with, "
          f"{time.time() - begin:.0f} s", flush=True)
    model = Detector().to(device).to(memory_format=layout(device))
    print(f"{sum(w.numel() for w in model.parameters())} parameters")
    train(a, Trainer(model, device, a.decay), data, val)


if __name__ == "__main__":
    main()
