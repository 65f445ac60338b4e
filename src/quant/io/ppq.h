/* SPDX-License-Identifier: Apache-2.0 */
/* A qmap in the format of PPQ's quant_cfg.json, for tools that read it. */
#ifndef OCT_QUANT_IO_PPQ_H
#define OCT_QUANT_IO_PPQ_H

#include "quant/qmap.h"

oct_status oct_qmap_save_ppq(const oct_qmap *m, const char *path);

#endif
