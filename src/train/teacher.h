/* SPDX-License-Identifier: Apache-2.0 */
/* Self-distillation: the network as it came, run on the same pictures as the one that learns. */
#ifndef OCT_TRAIN_TEACHER_H
#define OCT_TRAIN_TEACHER_H

#include <octet/plan.h>

#include "loss/loss.h"

typedef struct oct_teacher oct_teacher;

/*
 * `g` is the network with shapes, before anything was prepared for training; it is not changed and
 * may be freed. The teacher's values are those that pairs name; `images` is what it reads.
 */
oct_status oct_teacher_new(const oct_graph *g, const oct_loss_pair *pairs, int32_t n,
                           const char *input, const float *images, int n_threads,
                           oct_teacher **out);
void oct_teacher_free(oct_teacher *t); /* accepts NULL */

oct_status oct_teacher_run(oct_teacher *t);

/* What pair i's input is to be bound to: the value after a run. */
const void *oct_teacher_value(const oct_teacher *t, int32_t i, size_t *size);

#endif
