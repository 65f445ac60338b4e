# SPDX-License-Identifier: Apache-2.0
"""A small detector in the manner of YOLO-NAS: QARepVGG blocks, CSP stages, PAN neck, DFL heads."""
import math

import torch
from torch import nn

STRIDES = (8, 16, 32)
BINS = 17  # distances 0 to 16 strides


class ConvUnit(nn.Module):
    """Convolution, BatchNorm, ReLU."""

    def __init__(self, n_in, n_out, kernel=1, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(n_out)

    def forward(self, x):
        return torch.relu(self.bn(self.conv(x)))


class RepUnit(nn.Module):
    """QARepVGG: 3x3 with BatchNorm, 1x1 without, identity; one BatchNorm over the sum."""

    def __init__(self, n_in, n_out, stride=1):
        super().__init__()
        self.conv3 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(n_out)
        self.conv1 = nn.Conv2d(n_in, n_out, 1, stride)
        self.has_identity = stride == 1 and n_in == n_out
        self.post_bn = nn.BatchNorm2d(n_out)

    def forward(self, x):
        y = self.bn3(self.conv3(x)) + self.conv1(x)
        if self.has_identity:
            y = y + x
        return torch.relu(self.post_bn(y))


class Bottleneck(nn.Module):
    """Two 3x3 units with a weighted way around them."""

    def __init__(self, n, unit):
        super().__init__()
        self.a, self.b = unit(n, n), unit(n, n)
        self.alpha = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.alpha * x + self.b(self.a(x))


class Csp(nn.Module):
    """Cross-stage partial: every bottleneck's result and an untouched half are joined."""

    def __init__(self, n_in, n_out, n_hidden, depth, unit):
        super().__init__()
        self.main, self.side = ConvUnit(n_in, n_hidden), ConvUnit(n_in, n_hidden)
        self.steps = nn.ModuleList(Bottleneck(n_hidden, unit) for _ in range(depth))
        self.join = ConvUnit(n_hidden * (depth + 2), n_out)

    def forward(self, x):
        parts = [self.main(x)]
        for step in self.steps:
            parts.append(step(parts[-1]))
        return self.join(torch.cat(parts + [self.side(x)], 1))


class Stage(nn.Module):
    """Half the width and height, then a CSP layer."""

    def __init__(self, n_in, n_out, n_hidden, depth):
        super().__init__()
        self.down = RepUnit(n_in, n_out, 2)
        self.csp = Csp(n_out, n_out, n_hidden, depth, RepUnit)

    def forward(self, x):
        return self.csp(self.down(x))


class Spp(nn.Module):
    """Pooling over three widths."""

    def __init__(self, n):
        super().__init__()
        self.reduce, self.join = ConvUnit(n, n // 2), ConvUnit(n * 2, n)
        self.pools = nn.ModuleList(nn.MaxPool2d(k, 1, k // 2) for k in (5, 9, 13))

    def forward(self, x):
        x = self.reduce(x)
        return self.join(torch.cat([x] + [p(x) for p in self.pools], 1))


class Up(nn.Module):
    """Towards finer cells: what comes from below, and what the backbone saw at this width."""

    def __init__(self, n_in, n_skip, n_out, n_hidden, depth):
        super().__init__()
        self.reduce, self.skip = ConvUnit(n_in, n_out), ConvUnit(n_skip, n_out)
        self.up = nn.ConvTranspose2d(n_out, n_out, 2, 2)
        self.csp = Csp(n_out * 2, n_out, n_hidden, depth, RepUnit)

    def forward(self, x, skip):
        x = self.reduce(x)
        return x, self.csp(torch.cat([self.up(x), self.skip(skip)], 1))


class Down(nn.Module):
    """Towards coarser cells."""

    def __init__(self, n_in, n_skip, n_out, n_hidden, depth):
        super().__init__()
        self.down = ConvUnit(n_in, n_in, 3, 2)
        self.csp = Csp(n_in + n_skip, n_out, n_hidden, depth, lambda a, b: ConvUnit(a, b, 3))

    def forward(self, x, skip):
        return self.csp(torch.cat([self.down(x), skip], 1))


class Head(nn.Module):
    """Class logits and logits of distances for the cells of one level."""

    def __init__(self, n_in, n_inner, n_classes):
        super().__init__()
        self.stem = ConvUnit(n_in, n_inner)
        self.cls_conv, self.reg_conv = ConvUnit(n_inner, n_inner, 3), ConvUnit(n_inner, n_inner, 3)
        self.cls_pred = nn.Conv2d(n_inner, n_classes, 1)
        self.reg_pred = nn.Conv2d(n_inner, 4 * BINS, 1)
        nn.init.constant_(self.cls_pred.bias, -math.log(99))  # few cells hold anything

    def forward(self, x):
        x = self.stem(x)
        return self.cls_pred(self.cls_conv(x)), self.reg_pred(self.reg_conv(x))


class Detector(nn.Module):
    def __init__(self, n_classes=8):
        super().__init__()
        self.stem = RepUnit(3, 16, 2)
        self.s4 = Stage(16, 32, 16, 1)
        self.s8 = Stage(32, 56, 24, 2)
        self.s16 = Stage(56, 96, 32, 2)
        self.s32 = Stage(96, 160, 48, 1)
        self.spp = Spp(160)
        self.up16 = Up(160, 96, 48, 32, 1)
        self.up8 = Up(48, 56, 32, 24, 1)
        self.down16 = Down(32, 32, 48, 32, 1)
        self.down32 = Down(48, 48, 80, 32, 1)
        self.heads = nn.ModuleList(
            Head(n, inner, n_classes) for n, inner in ((32, 48), (48, 64), (80, 72)))
        self.register_buffer("bins", torch.arange(BINS, dtype=torch.float32).reshape(1, -1, 1, 1),
                             persistent=False)

    def levels(self, x):
        """Logits of classes and distances, one pair for each stride."""
        seen8 = self.s8(self.s4(self.stem(x)))
        seen16 = self.s16(seen8)
        mid16, x = self.up16(self.spp(self.s32(seen16)), seen16)
        mid8, fine = self.up8(x, seen8)
        middle = self.down16(fine, mid8)
        coarse = self.down32(middle, mid16)
        return [head(f) for head, f in zip(self.heads, (fine, middle, coarse))]

    def forward(self, x):
        """Boxes (x1, y1, x2, y2 in pixels) and scores of all cells."""
        logits, distances, points, strides = [], [], [], []
        for (cls, reg), stride in zip(self.levels(x), STRIDES):
            b, _, h, w = reg.shape
            reg = reg.reshape(b, 4, BINS, h * w).permute(0, 2, 3, 1).softmax(1)
            distances.append(nn.functional.conv2d(reg, self.bins).squeeze(1))
            logits.append(cls.reshape(b, -1, h * w).permute(0, 2, 1))
            xs = torch.arange(w, device=x.device, dtype=torch.float32) + 0.5
            ys = torch.arange(h, device=x.device, dtype=torch.float32) + 0.5
            xs, ys = xs.reshape(1, -1).expand(h, w), ys.reshape(-1, 1).expand(h, w)
            points.append(torch.stack([xs, ys], -1).reshape(-1, 2))
            strides.append(torch.full((h * w, 1), float(stride), device=x.device))
        low, high = torch.cat(distances, 1).split(2, -1)
        points, strides = torch.cat(points), torch.cat(strides)
        boxes = torch.cat([points - low, points + high], -1) * strides
        return boxes, torch.cat(logits, 1).sigmoid()
