/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the parameters of a network lie in flat float buffers.
 *
 * Weights, sums of gradients, momenta and averages are flat buffers of `len` floats with the same
 * layout: parameter i has elements [offset, offset + len). Offsets are multiples of 64 bytes, and
 * what lies between is zero. Running statistics have a layout of their own.
 */
#ifndef OCT_OPTIM_PARAMS_H
#define OCT_OPTIM_PARAMS_H

#include "graph/op.h"

typedef enum oct_param_kind {
    OCT_PARAM_WEIGHT,     /* of a layer with weights */
    OCT_PARAM_BIAS,       /* of such a layer */
    OCT_PARAM_NORM_SCALE, /* of a normalization */
    OCT_PARAM_NORM_BIAS,
    OCT_PARAM_OTHER,     /* operands of Add, Mul .. */
    OCT_PARAM_STEP_SIZE, /* scale of a fake quantization, or its logarithm */
    OCT_PARAM_ZERO_POINT,
    OCT_PARAM_KINDS
} oct_param_kind;

typedef struct oct_param {
    const char *name; /* borrowed: that of the value */
    oct_value *value; /* PARAM or STATE; NULL: made without a graph */
    int64_t offset, len;
    oct_param_kind kind;
    double rate;  /* factor of the learning rate; 1 */
    double decay; /* weight decay; 0 */
    bool frozen;  /* no optimizer touches it */
} oct_param;

/* A part of one parameter, small enough to be one thread's work. */
typedef struct oct_param_chunk {
    int32_t param;
    int64_t begin, end; /* elements of the parameter */
} oct_param_chunk;

typedef struct oct_params {
    oct_ctx *ctx;
    oct_param *v;
    int32_t n;
    size_t cap;
    int64_t len; /* floats of a flat buffer */
    oct_param_chunk *chunks;
    int64_t n_chunks;
    double *partial; /* scratch: one for each chunk */
} oct_params;

void oct_params_init(oct_params *p, oct_ctx *ctx);
void oct_params_fini(oct_params *p);

/* Appends a parameter of `len` floats; rate 1, decay 0. */
oct_status oct_params_add(oct_params *p, const char *name, int64_t len, oct_param_kind kind);

/* The same for a PARAM or STATE value, which must be float32 and of a known shape. */
oct_status oct_params_add_value(oct_params *p, oct_value *v, oct_param_kind kind);

static inline bool oct_param_is_bias(const oct_param *p)
{
    return p->kind == OCT_PARAM_BIAS || p->kind == OCT_PARAM_NORM_BIAS;
}

/* The usual groups: decay for weights only, or for everything (`all`). */
void oct_params_set_decay(oct_params *p, double decay, bool all);

/* After the last parameter was added, before any of the functions below and those of others. */
oct_status oct_params_finish(oct_params *p);

/* A flat buffer of zeros, to be freed with oct_free(). NULL: no memory, with the error set. */
float *oct_params_buffer(const oct_params *p);

/* What the graph's values start with, into a flat buffer; and a flat buffer back into them. */
void oct_params_load(const oct_params *p, float *flat);
oct_status oct_params_store(const oct_params *p, const float *flat);

/* at[i]: where parameter i begins. */
void oct_params_pointers(const oct_params *p, const float *flat, const float **at);

int32_t oct_params_find(const oct_params *p, const char *name); /* -1: none */

#endif
