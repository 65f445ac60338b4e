/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that callers registered: rows that live in a context. */
#ifndef OCT_OP_CUSTOM_H
#define OCT_OP_CUSTOM_H

#include <octet/op.h>

#include "op/op.h"

/* The registered row, or NULL in *out. An exact domain wins over "any". */
oct_status oct_custom_find(oct_ctx *ctx, const char *domain, const char *name, const oct_op **out);

/* A library to be closed after the rows are gone. */
oct_status oct_custom_keep(oct_ctx *ctx, void *library, void (*close)(void *library));

#endif
