/* SPDX-License-Identifier: Apache-2.0 */
/* Weights as signed bytes, and the scale of each accumulator. */
#include "exec/int8/int8_weights.h"

#include <math.h>

enum { X = OCT_WEIGHTED_X, W = OCT_WEIGHTED_W, B = OCT_WEIGHTED_B };

#define MAX_TERMS 65536 /* products of 255 and 128 whose sum fits 32 bits, with room for a bias */
#define SAME      1e-5f /* scales that were equal before they were rounded to f32 */

static bool nearly(float a, float b)
{
    return fabsf(a - b) <= SAME * fabsf(b);
}

static const oct_tensor *bias_of(const oct_plan *p, const oct_step *s)
{
    return s->fuse.residual == B ? NULL : oct_step_const(p, s, B);
}

/* --- scales --- */

/* The factor on the weights of filter o and input channel c; [1 or O, C/group, 1..]. */
static float factor_at(const oct_tensor *t, int64_t filters, int64_t o, int64_t c)
{
    const bool each = t->type.dim[0] == filters && filters > 1;

    return ((const float *)t->data)[(each ? o * t->type.dim[1] : 0) + (t->type.dim[1] > 1 ? c : 0)];
}

static bool factor_fits(const oct_tensor *t, const oct_int8_shape *w)
{
    if (!t) return true;
    if (t->type.rank < 2 || w->axis != 0) return false;
    if (t->type.dim[0] != 1 && t->type.dim[0] != w->filters) return false;
    if (t->type.dim[1] != 1 && t->type.dim[1] != w->channels) return false;
    return oct_type_span(&t->type, 2, t->type.rank) == 1;
}

/* The scale of filter o's products: it must be the same for all its channels; 0: it is not. */
static float product_scale(const oct_step *s, const oct_int8_shape *w, int64_t o)
{
    const oct_codes *x = &s->integer->in[X];
    const int64_t first = o / w->group_filters * w->channels;
    float scale = 0, top = 0, lowest = INFINITY, highest = 0;

    if (x->n == 1 && !s->integer->factor) return oct_codes_scale(x, 0);
    for (int64_t c = 0; c < w->channels; c++) {
        const float sx = oct_codes_scale(x, first + c);
        const float all =
            s->integer->factor ? sx * factor_at(s->integer->factor, w->filters, o, c) : sx;

        if (sx > top) { /* the largest scale has the factor 1 */
            top = sx;
            scale = all;
        }
        if (all < lowest) lowest = all;
        if (all > highest) highest = all;
    }
    return lowest > 0 && nearly(lowest, highest) ? scale : 0;
}

static bool scales_fit(const oct_step *s, const oct_int8_shape *w)
{
    const bool shared = s->integer->in[X].n == 1 && !s->integer->factor;

    if (!factor_fits(s->integer->factor, w)) return false;
    for (int64_t o = 0; o < (shared ? 1 : w->filters); o++)
        if (product_scale(s, w, o) == 0) return false;
    return true;
}

/* --- weights --- */

oct_int8_shape oct_int8_conv_shape(const oct_conv_geometry *g)
{
    const int64_t c = g->c_in / g->group, taps = oct_conv_geometry_kernel_size(g);

    return (oct_int8_shape){.filters = g->c_out,
                            .channels = c,
                            .taps = taps,
                            .group_filters = g->c_out / g->group,
                            .o = c * taps,
                            .c = taps,
                            .t = 1};
}

/* Are all zero points zero or absent, so that signed bytes are used as they are? */
static bool are_plain(const oct_codes *c)
{
    if (c->dtype != OCT_DTYPE_I8) return false;
    for (int64_t i = 0; c->zero && i < c->n; i++)
        if (oct_codes_zero(c, i) != 0) return false;
    return true;
}

static bool weights_fit(const oct_plan *p, const oct_step *s, const oct_int8_shape *w, bool *wide)
{
    const oct_codes *c = &s->integer->in[W];
    const oct_tensor *t = oct_step_const(p, s, W);
    int64_t piece[256];

    *wide = false;
    if (!t || !c->dtype || oct_dtype_get(c->dtype)->bits > 8) return false;
    if (c->axis >= 0 && c->axis != w->axis) return false;
    if (are_plain(c)) return true;
    for (int64_t at = 0, n, len = oct_tensor_len(t); at < len; at += n) {
        n = OCT_MIN(256, len - at);
        oct_load_i64(t->type.dtype, t->data, at, n, piece);
        for (int64_t i = 0; i < n; i++) {
            const int64_t o = (at + i) / w->o % w->filters;
            const int64_t v = piece[i] - oct_codes_zero(c, o);

            if (v < -256 || v > 254) return false;
            *wide = *wide || v < -128 || v > 127;
        }
    }
    return true;
}

static bool bias_fits(const oct_plan *p, const oct_step *s, const oct_int8_shape *w)
{
    const oct_slot *b = s->fuse.residual == B ? NULL : oct_step_in(p, s, B);
    const oct_codes *c = b ? &s->integer->in[B] : NULL;

    if (!b) return true;
    if (!b->data || oct_tensor_len(b->data) != w->filters) return false;
    if (!c->dtype) return b->type.dtype == OCT_DTYPE_F32;
    return oct_dtype_get(c->dtype)->kind == OCT_DKIND_INT && (c->n == 1 || c->n == w->filters);
}

bool oct_int8_weights_fit(const oct_plan *p, const oct_step *s, const oct_int8_shape *w,
                          bool *is_wide)
{
    if (w->channels > MAX_TERMS / w->taps) return false;
    return scales_fit(s, w) && bias_fits(p, s, w) && weights_fit(p, s, w, is_wide);
}

oct_status oct_int8_weights_read(const oct_plan *p, const oct_step *s, const oct_int8_shape *w,
                                 oct_int8_bytes *out)
{
    const oct_codes *c = &s->integer->in[W];
    const oct_tensor *t = oct_step_const(p, s, W);
    const int64_t len = oct_tensor_len(t);
    int64_t piece[256];
    int8_t *own;

    *out = (oct_int8_bytes){.w = t->data};
    if (are_plain(c)) return OCT_OK;
    if (!(own = oct_calloc(p->ctx, (size_t)OCT_MAX(len, 1), 2))) return OCT_ERR_MEMORY;
    for (int64_t at = 0, n; at < len; at += n) {
        n = OCT_MIN(256, len - at);
        oct_load_i64(t->type.dtype, t->data, at, n, piece);
        for (int64_t i = 0; i < n; i++) {
            const int64_t v = piece[i] - oct_codes_zero(c, (at + i) / w->o % w->filters);
            const int64_t most = OCT_MIN(OCT_MAX(v, -128), 127);

            own[at + i] = (int8_t)most;
            own[len + at + i] = (int8_t)(v - most);
        }
    }
    *out = (oct_int8_bytes){own, own + len, own};
    return OCT_OK;
}

/* --- accumulators --- */

/* A quantized bias is added to the accumulators as it is if its scales are those of the
 * accumulators. */
static bool bias_is_whole(const oct_codes *c, const float *scale, int64_t n)
{
    for (int64_t o = 0; o < n; o++)
        if (oct_codes_zero(c, o) != 0 || !nearly(oct_codes_scale(c, o), scale[o])) return false;
    return true;
}

oct_status oct_int8_weights_accumulators(oct_plan *p, const oct_step *s, const oct_int8_shape *w,
                                         oct_int8_accumulators *out)
{
    const oct_tensor *b = bias_of(p, s);
    const oct_codes *c = b ? &s->integer->in[B] : NULL;
    const size_t n = (size_t)w->filters;
    float *f = oct_plan_alloc(p, 2 * n, sizeof(*f));

    if (!f) return OCT_ERR_MEMORY;
    *out = (oct_int8_accumulators){.scale = f};
    for (int64_t o = 0; o < w->filters; o++)
        f[o] = product_scale(s, w, o) * oct_codes_scale(&s->integer->in[W], o);
    if (!b) return OCT_OK;
    if (c->dtype == OCT_DTYPE_I32 && bias_is_whole(c, f, w->filters)) {
        out->bias = b->data;
        return OCT_OK;
    }
    out->bias_f32 = f + n;
    for (int64_t o = 0; o < w->filters; o++)
        out->bias_f32[o] = c->dtype ? (float)(oct_tensor_get_i64(b, o) - oct_codes_zero(c, o)) *
                                          oct_codes_scale(c, o)
                                    : ((const float *)b->data)[o];
    return OCT_OK;
}

oct_status oct_int8_weights_pack(oct_plan *p, const oct_step *s, const oct_int8_weights *w,
                                 oct_int8_conv *c)
{
    const oct_int8 *set = oct_int8_get();
    const size_t size = oct_int8_conv_size(set, c);
    void *memory = size ? oct_plan_alloc_aligned(p, size) : NULL;

    if (!size) return oct_node_fail(s->node, OCT_ERR_UNSUPPORTED, "its weights are too large");
    if (!memory) return OCT_ERR_MEMORY;
    oct_int8_conv_pack(set, w, memory, c);
    return OCT_OK;
}

oct_int8_conv oct_int8_windows(const oct_conv_geometry *g)
{
    const bool depthwise = oct_conv_is_depthwise(g) && g->c_in == g->c_out;
    const int64_t n_parts = depthwise ? 1 : g->group;

    return (oct_int8_conv){.depthwise = depthwise,
                           .batch = g->batch,
                           .c_in = g->c_in / n_parts,
                           .c_out = g->c_out / n_parts,
                           .in_h = g->in[0],
                           .in_w = g->in[1],
                           .out_h = g->out[0],
                           .out_w = g->out[1],
                           .kernel = {g->kernel[0], g->kernel[1]},
                           .stride = {g->stride[0], g->stride[1]},
                           .dilation = {g->dilation[0], g->dilation[1]},
                           .pad = {g->pad_begin[0], g->pad_begin[1]}};
}

oct_int8_conv oct_int8_product(int64_t rows, int64_t pitch, const oct_int8_shape *w)
{
    return (oct_int8_conv){.batch = 1,
                           .c_in = w->channels,
                           .c_out = w->filters,
                           .in_h = 1,
                           .in_w = rows,
                           .in_pitch = pitch,
                           .out_h = 1,
                           .out_w = rows,
                           .out_pitch = w->filters,
                           .kernel = {1, 1},
                           .stride = {1, 1},
                           .dilation = {1, 1}};
}
