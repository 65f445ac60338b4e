/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * All of octet.
 */
#ifndef OCTET_OCTET_H
#define OCTET_OCTET_H

#include <octet/analyze.h>
#include <octet/control.h>
#include <octet/ctx.h>
#include <octet/data.h>
#include <octet/detect.h>
#include <octet/error.h>
#include <octet/eval.h>
#include <octet/file.h>
#include <octet/graph.h>
#include <octet/model.h>
#include <octet/onnx.h>
#include <octet/op.h>
#include <octet/openvino.h>
#include <octet/plan.h>
#include <octet/prune.h>
#include <octet/quant.h>
#include <octet/recipe.h>
#include <octet/report.h>
#include <octet/synth.h>
#include <octet/tensor.h>
#include <octet/train.h>
#include <octet/tune.h>
#include <octet/version.h>

#endif
