/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learning rates by step: how it falls (a row of a table), how it begins (another), and the
 * settings with which known projects train (presets).
 */
#ifndef OCT_OPTIM_SCHEDULE_H
#define OCT_OPTIM_SCHEDULE_H

#include "optim/optimizer.h"

enum { OCT_SCHEDULE_MAX_MILESTONES = 16 };

typedef enum oct_decay_kind {
    OCT_DECAY_CONSTANT,
    OCT_DECAY_STEP,   /* times `factor` at each milestone */
    OCT_DECAY_COSINE, /* to final_ratio */
    OCT_DECAY_LINEAR, /* to final_ratio */
} oct_decay_kind;

typedef enum oct_warmup_kind {
    OCT_WARMUP_NONE,
    OCT_WARMUP_LINEAR,    /* from warmup_start to the rate the schedule has then */
    OCT_WARMUP_QUADRATIC, /* (n / N)^2 of it, as YOLOX */
} oct_warmup_kind;

/* A row: the word of a recipe. */
typedef struct oct_schedule_word {
    const char *name, *help;
    int kind;
} oct_schedule_word;

/* The lists end with a name of NULL. */
extern const oct_schedule_word oct_decay_words[], oct_warmup_words[];
const oct_schedule_word *oct_schedule_word_find(const oct_schedule_word *words, const char *name);

typedef struct oct_schedule {
    oct_decay_kind decay;
    oct_warmup_kind warmup;
    double lr, final_ratio;                        /* of the rate at the end */
    double momentum;                               /* negative: the optimizer's */
    double milestone[OCT_SCHEDULE_MAX_MILESTONES]; /* epochs, ascending */
    int n_milestones;
    double factor;           /* at milestones */
    int64_t steps_per_epoch; /* optimizer steps */
    double epochs;           /* of the whole training */
    double horizon;          /* the fall takes so many times `epochs`; 0: 1 */
    double constant_end;     /* the last epochs have the final rate; the fall ends before */
    bool by_epoch;           /* the rate falls from epoch to epoch, else from step to step */
    bool after_warmup;       /* the fall begins where warming up ends */
    bool plus_one;           /* the fall takes one step more than there are */
    double warmup_steps;     /* optimizer steps; 0: warmup_epochs */
    double warmup_epochs;
    double warmup_least_steps; /* not shorter than this */
    double warmup_most_epochs; /* not longer than this; 0: no limit */
    bool warmup_closed;        /* its last step has the full rate, else the step after it */
    double warmup_start;       /* rate where warming up begins .. */
    double warmup_ratio;       /* .. and a ratio of lr, which is added to it */
    double warmup_bias;        /* rate where biases begin; negative: as the others */
    double warmup_momentum;    /* negative: the momentum does not warm up */
} oct_schedule;

/* Constant, lr 0.01, no warm-up, one epoch of one step. */
void oct_schedule_init(oct_schedule *s);

/* Says what makes no sense. */
oct_status oct_schedule_check(oct_ctx *ctx, const oct_schedule *s);

/* Rates of a step, counted from 0. */
void oct_schedule_at(const oct_schedule *s, int64_t step, oct_rates *out);

/* How a project trains: optimizer, groups and schedule. */
typedef struct oct_train_preset {
    const char *name, *help;
    const char *optimizer;
    oct_optimizer_options options;
    oct_schedule schedule; /* steps_per_epoch and epochs are the caller's */
    double epochs;         /* as the project trains */
    double decay;
    bool decay_all;       /* norms and biases decay as well */
    double clip;          /* of the norm; 0: none */
    double lr_batch;      /* lr is for so many pictures a step, and proportional; 0: for any */
    double decay_batch;   /* the same for decay; 0: for any */
    double nominal_batch; /* micro-batches are summed up to so many pictures a step; 0: not */
    const char *ema;      /* name of its decay (ema.h) */
    /* Quantization-aware training; zeros and NULL: the defaults of float training. */
    bool is_qat;          /* `epochs` and `batch` are the defaults of a job */
    bool rate_by_steps;   /* rates of weights are in proportion to the steps of their codes */
    int32_t batch;        /* pictures of a step; 0: any */
    const char *augment;  /* NULL: the family's */
    bool fix_scales;      /* as calibration found them */
    double scale_rate;    /* factor of lr for logarithms of scales; 0: 1 */
    double freeze_scales; /* after this share of the steps; 0: never */
} oct_train_preset;

const oct_train_preset *oct_train_preset_at(int i); /* NULL beyond the end */
const oct_train_preset *oct_train_preset_find(const char *name);

#endif
