/* SPDX-License-Identifier: Apache-2.0 */
/* Internal: which category each class is. */
#ifndef OCT_EVAL_CLASSES_H
#define OCT_EVAL_CLASSES_H

#include <octet/eval.h>

#include "base/status.h"

struct oct_class_map {
    oct_ctx *ctx;
    const char *how;
    int32_t *category; /* by class; -1: none */
    int32_t n;
    bool is_clear;
};

#endif
