# SPDX-License-Identifier: Apache-2.0
"""Small programs for check_pt2.py: between them they use the rows of src/torch/aten.def that few
networks use. Each takes x [2, 3, 8, 8] and returns a tuple."""

import torch
import torch.nn.functional as F


def arithmetic(x):
    i = (x * 3).to(torch.int64)
    return (x + 2, 2 - x, x.sub(x, alpha=0.5), x / 3, 1 / (x.abs() + 1), i // 2, i % 3, x % 0.7,
            torch.div(i, 2, rounding_mode="trunc"), torch.div(x, 0.3, rounding_mode="floor"),
            i / 2, x.pow(2), x.abs().pow(0.3), 2.0 ** x, torch.addcmul(x, x, x, value=0.5),
            torch.lerp(x, x * 2, 0.25), torch.maximum(x, x * -1), torch.rsub(x, 1.5),
            x.abs().rsqrt(), torch.log1p(x.abs()), torch.expm1(x), torch.log2(x.abs() + 1),
            x.trunc(), torch.erf(x), x.square(), i + 0.5, i * i)


def logic(x):
    i = (x * 3).to(torch.int64)
    m = x > 0
    return (m, x >= x.mean(), i == 1, i != 1, m & (x < 1), m | (x < -1), ~m, torch.logical_xor(m, x > 1),
            torch.where(m, x, 0.0), x.masked_fill(m, 3.5), x.clamp(min=0), x.clamp(-0.5, 0.5),
            torch.clamp(x, max=x.mean()), torch.isnan(x), i & 3, m.any(1), m.all(-1), x.lt(i))


def activations(x):
    return (F.elu(x), F.celu(x, 0.7), F.selu(x), F.mish(x), F.softplus(x), F.softplus(x, 2.0),
            F.hardswish(x), F.hardsigmoid(x), F.relu6(x), F.leaky_relu(x, 0.2), F.gelu(x),
            F.gelu(x, approximate="tanh"), F.glu(x, -1), F.logsigmoid(x), F.softsign(x), F.silu(x),
            F.hardshrink(x), F.threshold(x, 0.1, 2.0), F.log_softmax(x, 1), F.softmax(x, -1),
            F.prelu(x, torch.tensor([0.1, 0.2, 0.3])), F.hardtanh(x, -0.3, 0.4), torch.tanh(x))


def reductions(x):
    return (x.mean(), x.sum((1, 2)), x.sum(-1, keepdim=True), x.prod(2), x.amax((2, 3)), x.amin(1),
            x.logsumexp(1), x.var(1), x.std((2, 3), unbiased=False), *torch.var_mean(x, (1, 2)),
            x.argmax(), x.argmin(2), *x.max(1), *x.min(2, keepdim=True), *x.topk(3, -1),
            *x.sort(-1, descending=True), x.cumsum(1), x.norm(dim=1), x.abs().max(),
            torch.linalg.vector_norm(x, 1, (2, 3)), torch.linalg.vector_norm(x, float("inf"), 1))


def shapes(x):
    return (x.reshape(2, -1), x.view(6, 8, 8), x.flatten(2), x.flatten(), x.unflatten(-1, (2, 4)),
            x.unsqueeze(-1), x[:1].squeeze(0), x.permute(0, 2, 3, 1), x.transpose(1, -1), x.mT,
            x.movedim(1, -1), x[:, :1].expand(-1, 4, -1, -1), x.repeat(2, 1, 1, 2), x.view_as(x),
            x.swapaxes(2, 3).contiguous().view(2, 3, 64), x.flip((1, 3)), x.roll((1, -2), (2, 3)),
            torch.stack([x, x * 2], 1), torch.cat([x, x], -1), x.to(torch.float64).float())


def parts(x):
    i, k = torch.tensor([2, 0, 1]), torch.tensor([[0, 5], [7, 1]])
    return (x[:, 1], x[..., 2:-1], x[:, :, ::2], x[:, i], x[:, :, i, i], x[i[:2] % 2, :, i[:2]], x[..., k],
            x.gather(3, torch.zeros(2, 3, 8, 2, dtype=torch.int64)), x.index_select(2, i),
            *x.split(3, -1), *x.chunk(3, 2), *x.split([1, 2], 1), *x.unbind(1), x.narrow(2, 1, 4),
            F.pad(x, (1, 2)), F.pad(x, (1, 1, 2, 0), value=3.0), F.pad(x, (2, 1, 1, 2), mode="reflect"),
            F.pad(x, (1, 2, 3, 4), mode="replicate"), F.pad(x, (-1, 0)), x.unfold(2, 3, 2),
            F.unfold(x, 3, padding=1, stride=2), F.fold(F.unfold(x, 2), (8, 8), 2),
            F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2), F.pixel_unshuffle(x, 2),
            F.channel_shuffle(x.repeat(1, 2, 1, 1), 2), x.scatter(1, torch.zeros(2, 1, 8, 8, dtype=torch.int64), 5.0),
            F.embedding(k, torch.arange(32.0).view(8, 4)))


def pooling(x):
    return (F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 3, 2, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.avg_pool2d(x, 2, divisor_override=3), F.adaptive_avg_pool2d(x, (3, 5)),
            F.adaptive_avg_pool2d(x, (11, 4)), F.adaptive_avg_pool2d(x, 1), F.adaptive_max_pool2d(x, 4),
            F.avg_pool1d(x[:, :, 0], 3), F.max_pool1d(x[:, :, 0], 2), F.adaptive_avg_pool1d(x[:, 0], 1),
            F.max_pool3d(x, 2), F.interpolate(x, scale_factor=2.0), F.interpolate(x, (5, 11)),
            F.interpolate(x, (5, 11), mode="nearest-exact"), F.interpolate(x, (13, 6), mode="bilinear"),
            F.interpolate(x, (13, 6), mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=1.7, mode="bilinear"), F.interpolate(x, (12, 5), mode="bicubic"),
            F.interpolate(x, (5, 4), mode="bilinear", antialias=True),
            F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1).tanh()))


def layers(x):
    w, b = torch.linspace(-1, 1, 4 * 27).view(4, 3, 3, 3), torch.arange(4.0)
    return (F.conv2d(x, w, b, padding="same"), F.conv2d(x, w, b, 2, 1, 1), F.conv2d(x, w, dilation=2),
            F.conv_transpose2d(x, w.transpose(0, 1), b, 2, 1, 1), F.conv2d(x, w[:3, :1], groups=3),
            F.conv1d(x[:, :, 0], w[:, :, 0]), F.conv3d(x[:, None], w[:1][:, None]),
            F.layer_norm(x, (8, 8)), F.group_norm(x, 3, b[:3], b[:3]), F.instance_norm(x),
            F.rms_norm(x, (8,)), F.linear(x, w.view(-1)[:16].view(2, 8)), x @ x.mT, torch.bmm(x[:, 0], x[:, 1]),
            torch.baddbmm(x[:, 0], x[:, 1], x[:, 2], beta=0.5, alpha=2), torch.addmm(b[:1], x[0, 0], x[0, 1]),
            torch.einsum("bchw, bkhw -> bck", x, x), F.scaled_dot_product_attention(x, x, x),
            F.scaled_dot_product_attention(x, x, x, is_causal=True),
            F.scaled_dot_product_attention(x, x, x, attn_mask=x[0, 0] > -1))


def made(x):
    i = torch.arange(8)
    g = torch.meshgrid(torch.arange(3.0), torch.arange(5.0), indexing="xy")
    return (x + torch.arange(0, 4, 0.5), *g, *torch.meshgrid(i, i, indexing="ij"), torch.eye(3, 5) + x[0, 0, 0, 0],
            torch.full((2, 3), 7) + i[:3], torch.zeros_like(x), torch.ones_like(i), x.new_full((2,), 3.0),
            torch.triu(x, 1), torch.tril(x), F.one_hot(i, 9), torch.linspace(0, 1, 8) * x,
            x.new_zeros(3) + x[0, 0, 0, :3])


def in_place(x):
    y = x.clone()
    y[:, 0].fill_(1)
    y[:, 1:, 2:4].mul_(2)
    t = y.transpose(1, 2)
    t.add_(1)
    z = torch.zeros(2, 8, 8)
    z[0].copy_(y[0, 0])
    y.relu_()
    f = y.flatten(1)
    f.clamp_(max=2)
    return y, t, z, f, y.view(6, 64).sum(1)


PROGRAMS = (arithmetic, logic, activations, reductions, shapes, parts, pooling, layers, made, in_place)


class Program(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.program = {p.__name__: p for p in PROGRAMS}[name]

    def forward(self, x):
        return self.program(x)
