# SPDX-License-Identifier: Apache-2.0
"""What training minimises: task-aligned assignment; varifocal, GIoU and distribution focal loss."""
import torch
import torch.nn.functional as F

from model import BINS, STRIDES

TOP = 13  # cells that may answer for one object


def cells_of(levels):
    """Centres in pixels and strides of all cells."""
    points, strides = [], []
    for (cls, _), stride in zip(levels, STRIDES):
        h, w = cls.shape[2:]
        ys, xs = torch.meshgrid(torch.arange(h, device=cls.device),
                                torch.arange(w, device=cls.device), indexing="ij")
        points.append((torch.stack([xs, ys], -1).reshape(-1, 2) + 0.5) * stride)
        strides.append(torch.full((h * w, 1), float(stride), device=cls.device))
    return torch.cat(points), torch.cat(strides)


def area(size):
    """Not prod(): its gradient looks at the numbers, and the GPU would have to wait for that."""
    return size[..., 0] * size[..., 1]


def overlap(a, b, generalized=False):
    """IoU (or GIoU) of boxes that broadcast against each other."""
    size = torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])
    inter = area(size.clamp(0))
    union = area(a[..., 2:] - a[..., :2]) + area(b[..., 2:] - b[..., :2]) - inter + 1e-9
    iou = inter / union
    if not generalized:
        return iou
    hull = area(torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2]))
    return iou - (hull - union) / (hull + 1e-9)


@torch.no_grad()
def assign(scores, boxes, points, labels, truth, valid):
    """
    For each object the cells whose score times IoU^6 is best become its own. Returns for each cell
    the object's number, whether there is one, and how well it does (the wanted score).
    scores [B, N, C], boxes [B, N, 4], labels [B, M], truth [B, M, 4], valid [B, M].
    """
    iou = overlap(truth.unsqueeze(2), boxes.unsqueeze(1))  # [B, M, N]
    index = labels.unsqueeze(1).expand(-1, scores.shape[1], -1)
    score = scores.gather(2, index).transpose(1, 2)
    metric = score * iou.pow(6)
    near = torch.cat([points - truth[:, :, None, :2], truth[:, :, None, 2:] - points], -1)
    inside = (near.amin(-1) > 1e-9) & valid.unsqueeze(2)
    best = (metric * inside).topk(TOP, -1).indices
    chosen = torch.zeros_like(inside).scatter_(2, best, True) & inside
    several = chosen.sum(1, keepdim=True) > 1
    closest = torch.zeros_like(chosen).scatter_(1, (iou * inside).argmax(1, keepdim=True), True)
    chosen = torch.where(several, closest & inside, chosen)
    metric = metric * chosen
    top_metric = metric.amax(2, keepdim=True)
    top_iou = (iou * chosen).amax(2, keepdim=True)
    wanted = (metric / (top_metric + 1e-9) * top_iou).amax(1)
    return chosen.float().argmax(1), chosen.any(1), wanted


def detector_loss(levels, labels, truth, valid):
    """labels [B, M], truth [B, M, 4] in pixels, valid [B, M]: rows that hold an object."""
    points, strides = cells_of(levels)
    cls = torch.cat([c.flatten(2) for c, _ in levels], 2).transpose(1, 2).float()
    reg = torch.cat([r.flatten(2) for _, r in levels], 2).transpose(1, 2).float()
    reg = reg.reshape(*reg.shape[:2], 4, BINS)
    bins = torch.arange(BINS, device=reg.device, dtype=torch.float32)
    distance = (reg.softmax(-1) * bins).sum(-1) * strides
    boxes = torch.cat([points - distance[..., :2], points + distance[..., 2:]], -1)
    owner, is_object, wanted = assign(cls.sigmoid(), boxes, points, labels, truth, valid)

    wanted = torch.where(is_object, wanted, torch.zeros_like(wanted))
    classes = torch.arange(cls.shape[-1], device=cls.device)
    one_hot = (labels.gather(1, owner).unsqueeze(-1) == classes) * wanted.unsqueeze(-1)
    weight = torch.where(one_hot > 0, one_hot, 0.75 * cls.detach().sigmoid().pow(2))
    cls_loss = (F.binary_cross_entropy_with_logits(cls, one_hot, reduction="none") * weight).sum()

    goal = truth.gather(1, owner.unsqueeze(-1).expand(-1, -1, 4))
    box_loss = ((1 - overlap(boxes, goal, True)) * wanted).sum()
    sides = torch.cat([points - goal[..., :2], goal[..., 2:] - points], -1) / strides
    sides = sides.clamp(0, BINS - 1.01)
    low = sides.long()
    log_p = reg.log_softmax(-1)
    share = sides - low
    dfl = -(log_p.gather(-1, low.unsqueeze(-1)).squeeze(-1) * (1 - share) +
            log_p.gather(-1, low.unsqueeze(-1) + 1).squeeze(-1) * share)
    dfl_loss = (dfl.mean(-1) * wanted).sum()
    total = wanted.sum().clamp(1)
    return (cls_loss + 2.5 * box_loss + 0.5 * dfl_loss) / total
