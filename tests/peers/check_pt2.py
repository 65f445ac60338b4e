# SPDX-License-Identifier: Apache-2.0
"""Exports networks of torchvision and timm with torch.export and compares octet with PyTorch.

usage: check_pt2.py OCTET [--all] [NAME...]

Weights are random, those of BatchNorm's statistics too; the network is saved as .pt2 and run on
random numbers. Outputs within 1e-4 of PyTorch's, relative to the largest magnitude where that is above 1.
--all: every network of the list, core ATen forms and open batches, some minutes. Without it
the quick ones, at least 30. One line for each, then `N passed, N failed, N skipped`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

TOLERANCE = 1e-4

# Exported, run and compared in a second or two each; ops/ are the programs of pt2_operators.py.
QUICK = """
ops/arithmetic ops/logic ops/activations ops/reductions ops/shapes ops/parts ops/pooling ops/layers
ops/made ops/in_place
tv/resnet18 tv/mobilenet_v2 tv/mobilenet_v3_small tv/shufflenet_v2_x0_5 tv/squeezenet1_0 tv/mnasnet0_5
tv/efficientnet_b0 tv/regnet_y_400mf tv/regnet_x_400mf tv/googlenet
seg/lraspp_mobilenet_v3_large seg/deeplabv3_mobilenet_v3_large
timm/resnet10t timm/ghostnet_100 timm/tf_efficientnet_lite0 timm/mixnet_s timm/repvgg_a0 timm/lcnet_050
timm/tinynet_e timm/mobilenetv4_conv_small timm/hgnetv2_b0 timm/starnet_s1 timm/gernet_s timm/skresnet18
timm/vit_tiny_patch16_224 timm/deit_tiny_patch16_224 timm/levit_128s timm/mobilevit_xxs
timm/mobilevitv2_050 timm/edgenext_xx_small timm/convnextv2_atto timm/pvt_v2_b0 timm/poolformer_s12
timm/fastvit_t8 timm/efficientformerv2_s0 timm/xcit_nano_12_p16_224
""".split()

FURTHER = """
tv/densenet121 tv/resnext50_32x4d tv/wide_resnet50_2 tv/convnext_tiny tv/vit_b_16 tv/swin_t tv/swin_v2_t
tv/maxvit_t tv/inception_v3 tv/alexnet tv/vgg11 tv/efficientnet_v2_s seg/fcn_resnet50
timm/resnetv2_50 timm/tf_efficientnet_b0 timm/hrnet_w18_small timm/dla34 timm/res2net50_26w_4s
timm/cspresnet50 timm/cspdarknet53 timm/convmixer_768_32 timm/mixer_s32_224 timm/gmlp_s16_224
timm/twins_pcpvt_small timm/coat_lite_tiny timm/nfnet_l0 timm/resnest14d timm/vovnet39a
timm/ese_vovnet19b_dw timm/inception_next_tiny timm/eva02_tiny_patch14_224
timm/swin_tiny_patch4_window7_224 timm/beit_base_patch16_224 timm/crossvit_tiny_240 timm/visformer_tiny
timm/halonet26t timm/bat_resnext26ts timm/dpn48b timm/sequencer2d_s timm/davit_tiny
timm/focalnet_tiny_srf timm/nest_tiny timm/tiny_vit_5m_224 timm/rdnet_tiny timm/cait_xxs24_224
timm/volo_d1_224 timm/mvitv2_tiny timm/hiera_tiny_224 timm/maxxvit_rmlp_nano_rw_256
timm/coatnet_nano_rw_224
""".split()

# Those also decomposed to core ATen, and exported with an open batch.
FORMS = ("tv/resnet18", "tv/mobilenet_v3_small", "tv/shufflenet_v2_x0_5", "tv/swin_t",
         "seg/lraspp_mobilenet_v3_large", "timm/mobilevit_xxs")

TORCHVISION_SIZES = {"inception_v3": 299, "vit_b_16": 224, "swin_t": 224, "swin_v2_t": 256,
                     "maxvit_t": 224}


def need_torch():
    """Ends the script with the closing line when PyTorch and its collections are not there."""
    try:
        import timm  # noqa: F401
        import torch  # noqa: F401
        import torchvision  # noqa: F401
    except ImportError as error:
        print(f"check_pt2: skipped: {error}; make check-losses makes the environment")
        print("0 passed, 0 failed, 1 skipped")
        sys.exit(0)


def make(name):
    """The network and the size of its input."""
    import timm
    import torch
    import torchvision
    kind, name = name.split("/")
    torch.manual_seed(0)
    if kind == "ops":
        import pt2_operators
        net, size = pt2_operators.Program(name), 8
    elif kind == "timm":
        net = timm.create_model(name, pretrained=False)
        size = net.default_cfg["input_size"][-1]
    elif kind == "seg":
        net, size = torchvision.models.get_model(name, weights=None, weights_backbone=None), 96
    else:
        slow = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        net = torchvision.models.get_model(name, weights=None, **slow)
        size = TORCHVISION_SIZES.get(name, 96)
    for module in net.modules():
        if getattr(module, "running_mean", None) is not None:
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return net.eval(), size


def outputs_of(y):
    if isinstance(y, dict):
        y = list(y.values())
    return [t.numpy() for t in (y if isinstance(y, (list, tuple)) else [y])]


def export(net, size, form, path):
    """Saves the network; returns an input and PyTorch's outputs."""
    import torch
    dynamic = form == "batch"
    x = torch.randn(2 if dynamic or size == 8 else 1, 3, size, size)
    with torch.no_grad():
        shapes = ({0: torch.export.Dim("batch", min=1, max=64)},) if dynamic else None
        program = torch.export.export(net, (x,), dynamic_shapes=shapes)
        if form == "core":
            program = program.run_decompositions()
        torch.export.save(program, path)
        x = torch.randn(3, 3, size, size) if dynamic else x
        return x.numpy(), outputs_of(net(x.clone()))


def octet_run(octet, model, x, folder):
    import numpy as np
    np.save(folder / "x.npy", x)
    run = subprocess.run([octet, "run", model, "--input", folder / "x.npy", "--out", folder / "out",
                          "--json", "--quiet"], capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr.strip().split("\n")[-1])
    return [np.load(w["file"]) for w in json.loads(run.stdout)["written"]]


def check(octet, name, form):
    """Returns (passed, text)."""
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        net, size = make(name)
        x, wanted = export(net, size, form, folder / "net.pt2")
        got = octet_run(octet, folder / "net.pt2", x, folder)
    if [g.shape for g in got] != [w.shape for w in wanted]:
        raise RuntimeError(f"shapes {[g.shape for g in got]}, want {[w.shape for w in wanted]}")
    if [g.dtype for g in got] != [w.dtype for w in wanted]:
        raise RuntimeError(f"types {[g.dtype for g in got]}, want {[w.dtype for w in wanted]}")
    worst = max(float(np.max(np.abs(g - w))) / max(1.0, float(np.max(np.abs(w))))
                for g, w in ((g.astype(float), w.astype(float)) for g, w in zip(got, wanted)))
    return worst <= TOLERANCE, f"{worst:9.2e} (at most {TOLERANCE:g})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("octet")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    need_torch()
    warnings.filterwarnings("ignore")
    import torch
    print(f"against PyTorch {torch.__version__}")
    forms = [(n, "") for n in QUICK + (FURTHER if args.all else [])]
    forms += [(n, f) for n in (FORMS if args.all else FORMS[:2]) for f in ("core", "batch")]
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for name, form in forms:
        if args.names and name not in args.names and name.split("/")[1] not in args.names:
            continue
        start = time.monotonic()
        try:
            passed, text = check(args.octet, name, form)
            verdict = "passed" if passed else "failed"
        except (RuntimeError, OSError) as error:
            verdict, text = "failed", str(error)[:300]
        count[verdict] += 1
        print(f"{name + (' ' + form if form else ''):36s} {verdict:8s} {text} "
              f"{time.monotonic() - start:5.1f} s", flush=True)
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
