/* SPDX-License-Identifier: Apache-2.0 */
/* A network that is quantized already, for another target: its own scales and codes are kept where
 * the target can hold them. */
#ifndef OCT_QUANT_RETARGET_H
#define OCT_QUANT_RETARGET_H

#include "quant/qmap.h"

/* How many scales are the file's, how many are only near them, and how many it does not have. */
typedef struct oct_retargeted {
    int32_t kept, fitted, missing;
} oct_retargeted;

/* If layers of *g are quantized, *g becomes the float network behind them and *file its qmap; else
 * nothing happens. */
oct_status oct_retarget_open(oct_graph **g, oct_qmap **file);

/*
 * Activations get the file's scales. Those that it does not have keep what they were solved to; if
 * they were not, they become float, and so do layers that read them. Values and nodes of both
 * qmaps have the same ids.
 */
oct_status oct_retarget_activations(oct_qmap *m, const oct_qmap *file, oct_retargeted *r);

/* Weights, solved already, get the file's scales where these give the file's codes. */
oct_status oct_retarget_weights(oct_qmap *m, const oct_qmap *file, oct_retargeted *r);

#endif
