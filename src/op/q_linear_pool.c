/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft QLinearGlobalAveragePool and QLinearAveragePool. */
#include <string.h>

#include "base/parallel.h"
#include "op/conv_geometry.h"
#include "op/q_linear_unary.h"
#include "op/work.h"

static int code(const oct_tensor *x, int64_t i)
{
    return x->type.dtype == OCT_DTYPE_I8 ? ((const int8_t *)x->data)[i]
                                         : ((const uint8_t *)x->data)[i];
}

/* --- QLinearGlobalAveragePool --- */

enum { CHANNELS_LAST };

static oct_status shape_global(const oct_infer *q)
{
    const oct_type *x = q->in[OCT_QX];

    OCT_TRY(oct_q_linear_check(q));
    if (x->rank >= 0 && x->rank < 3)
        return oct_infer_fail(q, OCT_ERR_SHAPE, "rank is %d, below 3", x->rank);
    q->out[0] = *x;
    for (int i = 0; i < x->rank; i++)
        if (oct_int(q->node, CHANNELS_LAST) ? i > 0 && i < x->rank - 1 : i > 1)
            q->out[0].dim[i] = 1;
    return OCT_OK;
}

static oct_status ref_global(const oct_args *a)
{
    const oct_tensor *x = a->in[OCT_QX];
    const oct_type *t = &x->type;
    const bool last = oct_int(a->node, CHANNELS_LAST) != 0;
    const int64_t channels = last ? t->dim[t->rank - 1] : t->dim[1];
    const int64_t size = last ? oct_type_span(t, 1, t->rank - 1) : oct_type_span(t, 2, t->rank);
    const int64_t step = last ? channels : 1;
    const int32_t zero = oct_quant_zero(a, OCT_QX_ZERO);
    const float scale =
        oct_quant_scale(a, OCT_QX_SCALE) / (oct_quant_scale(a, OCT_QY_SCALE) * (float)size);

    for (int64_t i = 0; i < t->dim[0] * channels; i++) {
        const int64_t at = last ? i / channels * channels * size + i % channels : i * size;
        uint32_t sum = 0;
        int32_t total;

        for (int64_t k = 0; k < size; k++)
            sum += (uint32_t)(code(x, at + k * step) - zero);
        total = (int32_t)sum;
        oct_requantize(&total, 1, scale, oct_quant_zero(a, OCT_QY_ZERO), t->dtype,
                       (uint8_t *)a->out[0]->data + i);
    }
    return OCT_OK;
}

static const oct_attr_def global_attrs[] = {
    [CHANNELS_LAST] = {"channels_last", OCT_ATTR_INT, .def.i = 0}, {0}};

const oct_op oct_op_q_linear_global_average_pool = {
    .name = "QLinearGlobalAveragePool",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 2,
    .max_in = 5,
    .attrs = global_attrs,
    .shape = shape_global,
    .ref = ref_global,
    .flow = OCT_FLOW_PASS,
};

/* --- QLinearAveragePool --- */

enum { COUNT_INCLUDE_PAD = CHANNELS_LAST + 1 };

static oct_status shape_average(const oct_infer *q)
{
    oct_conv_geometry g;

    OCT_TRY(oct_q_linear_check(q));
    if (oct_int(q->node, CHANNELS_LAST))
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "channels_last");
    OCT_TRY(oct_conv_geometry_pool(q->node, q->in[OCT_QX], &g));
    q->out[0] = oct_conv_geometry_type(&g, q->in[OCT_QX]->dtype);
    return OCT_OK;
}

typedef struct job {
    const oct_args *a;
    oct_conv_geometry g;
    int64_t in_size, out_size;
    int32_t x_zero;
} job;

/* Elements of the padded input that the window at o covers: what count_include_pad divides by. */
static int64_t padded_count(const oct_conv_geometry *g, const int64_t *o)
{
    int64_t n = 1;

    for (int d = 0; d < g->n; d++) {
        const int64_t start = o[d] * g->stride[d] - g->pad_begin[d];
        const int64_t room = g->in[d] + g->pad_end[d] - start; /* ceil_mode may reach beyond */

        n *= room <= 0 ? 0 : OCT_MIN(g->kernel[d], (room - 1) / g->dilation[d] + 1);
    }
    return n;
}

/* The mean of one window of one channel, in codes above the zero point. */
static float average(const job *j, const int64_t *o, int64_t channel)
{
    const oct_conv_geometry *g = &j->g;
    const oct_tensor *x = j->a->in[OCT_QX];
    int64_t from[OCT_MAX_SPATIAL], to[OCT_MAX_SPATIAL], k[OCT_MAX_SPATIAL], sum = 0, count = 0;

    for (int d = 0; d < g->n; d++) {
        oct_conv_window(g, d, o[d], &from[d], &to[d]);
        if (from[d] >= to[d]) return 0;
        k[d] = from[d];
    }
    do {
        int64_t at = channel;

        for (int d = 0; d < g->n; d++)
            at = at * g->in[d] + o[d] * g->stride[d] - g->pad_begin[d] + k[d] * g->dilation[d];
        sum += code(x, at) - j->x_zero;
        count++;
    } while (oct_next_index(g->n, k, from, to));
    if (oct_int(j->a->node, COUNT_INCLUDE_PAD)) count = OCT_MAX(padded_count(g, o), 1);
    return (float)sum / (float)count;
}

static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_conv_geometry *g = &j->g;
    const float scale = oct_quant_scale(j->a, OCT_QX_SCALE);
    oct_tensor *y = j->a->out[0];

    for (int64_t i = begin; i < end; i++) {
        int64_t o[OCT_MAX_SPATIAL], rest = i % j->out_size;
        float v;

        for (int d = g->n - 1; d >= 0; d--) {
            o[d] = rest % g->out[d];
            rest /= g->out[d];
        }
        v = average(j, o, i / j->out_size) * scale;
        oct_quantize_codes(&v, 1, oct_quant_scale(j->a, OCT_QY_SCALE),
                           oct_quant_zero(j->a, OCT_QY_ZERO), y->type.dtype,
                           (uint8_t *)y->data + i);
    }
}

static oct_status ref_average(const oct_args *a)
{
    job j = {.a = a, .x_zero = oct_quant_zero(a, OCT_QX_ZERO)};

    OCT_TRY(oct_conv_geometry_pool(a->node, &a->in[OCT_QX]->type, &j.g));
    OCT_TRY(oct_args_spend(a, oct_conv_geometry_taps(&j.g, false)));
    j.out_size = oct_conv_geometry_out_size(&j.g);
    oct_parallel_for(a->n_threads, oct_tensor_len(a->out[0]), 1024, range, &j);
    return OCT_OK;
}

static const oct_attr_def average_attrs[] = {
    [CHANNELS_LAST] = {"channels_last", OCT_ATTR_INT, .def.i = 0},
    [COUNT_INCLUDE_PAD] = {"count_include_pad", OCT_ATTR_INT, .def.i = 0},
    {"auto_pad", OCT_ATTR_STRING, .def.s = "NOTSET", .n_def = 6},
    {"ceil_mode", OCT_ATTR_INT, .def.i = 0},
    {"kernel_shape", OCT_ATTR_INTS, .no_default = true, .required = true},
    {"pads", OCT_ATTR_INTS, .no_default = true},
    {"strides", OCT_ATTR_INTS, .no_default = true},
    {0},
};

const oct_op oct_op_q_linear_average_pool = {
    .name = "QLinearAveragePool",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 2,
    .max_in = 5,
    .attrs = average_attrs,
    .shape = shape_average,
    .ref = ref_average,
    .flow = OCT_FLOW_PASS,
};
