# SPDX-License-Identifier: Apache-2.0
# The list of layers, for tools/check-layers (includes) and tools/check-symbols (what is linked).
BEGIN {
    may["base"] = ""
    may["tensor"] = "base"
    may["graph"] = "base tensor"
    may["op"] = "base tensor graph"
    may["onnx"] = may["pass"] = may["grad"] = "base tensor graph op"
    may["openvino"] = "base tensor graph op pass"
    may["torch"] = "base tensor graph op"
    may["optim"] = "base tensor graph"
    may["exec"] = "base tensor graph op pass"
    may["data"] = "base tensor"
    may["synth"] = "base tensor data"
    may["detect"] = "base tensor graph op pass exec data"
    may["feed"] = "base tensor graph op exec data detect"
    may["stat"] = "base tensor graph op exec feed"
    may["eval"] = "base tensor graph op exec data detect feed stat"
    may["prune"] = "base tensor graph op pass exec data detect feed stat"
    may["quant"] = "base tensor graph op pass grad optim exec data detect feed stat"
    may["loss"] = "base tensor graph op exec data detect"
    may["augment"] = "base tensor data detect"
    may["train"] = "base tensor graph op pass grad optim exec prune data detect eval feed quant loss augment onnx"
    may["model"] = "base tensor graph onnx openvino torch train"
    may["recipe"] = "base data"
    may["analyze"] = "base tensor graph op pass exec data detect eval feed stat quant"
    may["control"] = "base tensor graph op exec data detect eval feed stat quant analyze"
    may["report"] = "base tensor graph analyze"
    may["tune"] = "base tensor graph onnx exec data detect eval quant recipe analyze"
    may["cli"] = ""
    # Inside quant, in processing order: each sees itself and those before it.
    n_quant = split("spec target qmap activation_after npu place observe solve fallback lower learn raise " \
                    "io correct heal bits diagnose scales provenance npu_check retarget half quantized quantize", names, " ")
    for (i = 1; i <= n_quant; i++) order[names[i]] = i
    # A recipe fills in the options of others, and asks for the names that their tables list.
    may_see_public["recipe"] = "tensor graph exec detect prune quant train"
    may_see_public["report"] = "data detect eval prune" # figures, boxes and layers to show
}

# The parts of quant: "src/quant/place/tail.c" is of place, "quant/qmap.h" of qmap.
function part_of_quant(name) {
    sub(/^(src\/)?quant\//, "", name)
    sub(/[\/.].*/, "", name)
    return name
}

# Why file `a` of quant may not see file `b` of quant; "" if it may.
function why_not_in_quant(a, b) {
    a = part_of_quant(a)
    b = part_of_quant(b)
    if (!(a in order)) return "quant/" a " is not in the order of quant"
    if (!(b in order)) return "quant/" b " is not in the order of quant"
    return order[b] > order[a] ? "quant/" a " may not see quant/" b : ""
}

# May folder `from` use what the public headers of folder `to` declare?
function may_see(from, to) {
    return from == to || index(" " may[from] " " may_see_public[from] " ", " " to " ") > 0
}
