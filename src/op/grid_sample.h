/* SPDX-License-Identifier: Apache-2.0 */
/* Which elements GridSample and its gradient read for a position, and with what weights. */
#ifndef OCT_OP_GRID_SAMPLE_H
#define OCT_OP_GRID_SAMPLE_H

#include "op/op.h"

enum { OCT_GRID_MAX_SPACE = 3, OCT_GRID_MAX_TAPS = 4 };

typedef enum oct_grid_mode { OCT_GRID_NEAREST, OCT_GRID_LINEAR, OCT_GRID_CUBIC } oct_grid_mode;
typedef enum oct_grid_pad { OCT_GRID_ZEROS, OCT_GRID_BORDER, OCT_GRID_REFLECTION } oct_grid_pad;

typedef struct oct_grid_params {
    oct_grid_mode mode;
    oct_grid_pad pad;
    bool align;
    bool is_f64; /* positions are not rounded to float */
} oct_grid_params;

/* The taps of one coordinate along one axis. */
typedef struct oct_grid_taps {
    int64_t index[OCT_GRID_MAX_TAPS]; /* -1: zero */
    double weight[OCT_GRID_MAX_TAPS];
    double slope[OCT_GRID_MAX_TAPS]; /* of the weight, by the coordinate */
    int count;
} oct_grid_taps;

/* From attributes of GridSample, found by name. */
oct_status oct_grid_read(const oct_node *n, oct_dtype grid, oct_grid_params *p);

void oct_grid_find(const oct_grid_params *p, double at, int64_t n, oct_grid_taps *t);

/* Operand shapes: grid [N x out x D] for x [N x C x D dims]. */
oct_status oct_grid_check(const oct_node *n, const oct_type *x, const oct_type *grid);

#endif
