/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a training job: what the caller said, and the preset's where he said nothing. */
#ifndef OCT_TRAIN_SETTINGS_H
#define OCT_TRAIN_SETTINGS_H

#include <octet/train.h>

#include "augment/augment.h"
#include "loss/loss.h"
#include "optim/ema.h"
#include "optim/schedule.h"

typedef struct oct_train_settings {
    const oct_train_preset *preset;
    const oct_loss_row *loss;
    const oct_optimizer_row *optimizer;
    oct_optimizer_options optimizer_options;
    oct_schedule schedule;  /* steps_per_epoch is set when the batches are known */
    const oct_ema_row *ema; /* NULL: none */
    const char *augment_name;
    oct_augment augment;
    int32_t epochs, batch, accumulate;
    double decay;
    bool decay_all;
    double clip; /* 0: never */
    double norm_momentum;
    size_t memory; /* bytes; 0: any number */
    /* quantization-aware */
    bool fix_scales;      /* as calibration found them */
    double scale_rate;    /* factor of the rate for logarithms of scales */
    double freeze_scales; /* share of the steps after which scales are fixed; 1: never */
    bool is_bf16;
} oct_train_settings;

/* `family`: of the network, or NULL. `o` has all fields. */
oct_status oct_train_settings_resolve(oct_ctx *ctx, const oct_train_options *o, const char *family,
                                      oct_train_settings *out);

#endif
