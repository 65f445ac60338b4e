/* SPDX-License-Identifier: Apache-2.0 */
/* A qmap in the formats of other tools: PPQ's quant_cfg.json, TensorRT's calibration cache. */
#ifndef OCT_QUANT_IO_PPQ_H
#define OCT_QUANT_IO_PPQ_H

#include "quant/qmap.h"

oct_status oct_qmap_save_ppq(const oct_qmap *m, const char *path);
oct_status oct_qmap_save_tensorrt(const oct_qmap *m, const char *path,
                                  bool as_json); /* tensorrt.c */

#endif
