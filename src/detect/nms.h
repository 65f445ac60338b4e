/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates: what a decoder found, before and after non-maximum suppression. */
#ifndef OCT_DETECT_NMS_H
#define OCT_DETECT_NMS_H

#include <octet/detect.h>

#include "base/mem.h"

/* One box above the threshold, in pixels of the network's input. */
typedef struct oct_candidate {
    float x1, y1, x2, y2;
    float score;
    int32_t category;
    int64_t index; /* its place in the network's output: the lower wins among equal scores */
    int32_t next;  /* suppression: the next kept box of the same category, or -1 */
} oct_candidate;

/* A growing list that keeps the best `top_k`; its memory stays for the next picture. */
typedef struct oct_candidates {
    oct_ctx *ctx;
    oct_candidate *items;
    size_t n, cap;
    size_t top_k;   /* at least 1 */
    int32_t *heads; /* suppression: the last kept box of each category, or -1 */
    size_t cap_heads;
    oct_status status; /* sticky: pushing does nothing after the first failure */
} oct_candidates;

void oct_candidates_init(oct_candidates *c, oct_ctx *ctx);
void oct_candidates_fini(oct_candidates *c);
void oct_candidates_start(oct_candidates *c, int32_t top_k); /* empty again */

/* Boxes without area, and numbers that are not finite, are left out. */
void oct_candidates_push(oct_candidates *c, const oct_candidate *box);

/*
 * Suppresses, maps to the picture, clips. Boxes outside the picture are dropped before they can
 * suppress others. At most o->max_detections are written, best first.
 */
oct_status oct_candidates_suppress(oct_candidates *c, const oct_nms_options *o,
                                   const oct_mapping *map, oct_detection *out, int32_t *n);

#endif
