/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks the attributes of convolutions and pooling, and computes their output sizes. */
#include "op/conv_geometry.h"

#include <string.h>

/* Windows are far smaller; with this bound no product of two such numbers overflows. */
#define MAX_EXTENT INT32_MAX

typedef enum auto_pad { PAD_NOTSET, PAD_VALID, PAD_SAME_UPPER, PAD_SAME_LOWER } auto_pad;

const oct_attr_def oct_conv_attrs[] = {
    {.name = "auto_pad", .kind = OCT_ATTR_STRING, .def = {.s = "NOTSET"}, .n_def = 6},
    {.name = "dilations", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "group", .kind = OCT_ATTR_INT, .def = {.i = 1}},
    {.name = "kernel_shape", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "pads", .kind = OCT_ATTR_INTS, .no_default = true},
    {.name = "strides", .kind = OCT_ATTR_INTS, .no_default = true},
    {0},
};

/* The attribute's `count` numbers, each in [lo, MAX_EXTENT]; *found says whether it is there. */
static oct_status read_ints(const oct_node *n, const char *name, int count, int64_t lo,
                            int64_t *out, bool *found)
{
    const oct_attr *a = oct_node_attr(n, name);

    *found = a && a->kind == OCT_ATTR_INTS;
    if (!*found) return OCT_OK;
    if (a->n != count)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%s has %lld numbers, %d are needed", name,
                             (long long)a->n, count);
    for (int i = 0; i < count; i++) {
        if (a->is[i] < lo || a->is[i] > MAX_EXTENT)
            return oct_node_fail(n, OCT_ERR_SHAPE, "%s[%d] is %lld", name, i, (long long)a->is[i]);
        out[i] = a->is[i];
    }
    return OCT_OK;
}

static oct_status read_or_fill(const oct_node *n, const char *name, int count, int64_t lo,
                               int64_t fill, int64_t *out)
{
    bool found;

    OCT_TRY(read_ints(n, name, count, lo, out, &found));
    for (int i = 0; i < count && !found; i++)
        out[i] = fill;
    return OCT_OK;
}

static oct_status read_auto_pad(const oct_node *n, auto_pad *out)
{
    static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    const oct_attr *a = oct_node_attr(n, "auto_pad");

    *out = PAD_NOTSET;
    if (!a || a->kind != OCT_ATTR_STRING || a->s[0] == '\0') return OCT_OK;
    for (size_t i = 0; i < OCT_COUNT(names); i++) {
        if (strcmp(a->s, names[i]) != 0) continue;
        *out = (auto_pad)i;
        return OCT_OK;
    }
    return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "auto_pad '%.40s' is not known", a->s);
}

static int64_t attr_int(const oct_node *n, const char *name, int64_t fallback)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_INT ? a->i : fallback;
}

/* What all kinds share: rank, input dims, kernel, strides, dilations, explicit pads. */
static oct_status read_common(const oct_node *n, const oct_type *x, const oct_type *w,
                              oct_conv_geometry *g)
{
    const int32_t rank = x->rank >= 0 ? x->rank : w ? w->rank : -1;
    int64_t pads[2 * OCT_MAX_SPATIAL];
    bool found;

    memset(g, 0, sizeof(*g));
    g->n = -1;
    g->batch = g->c_in = g->c_out = g->group = -1;
    if (rank < 0) return OCT_OK;
    if (rank < 3 || rank > OCT_MAX_RANK)
        return oct_node_fail(n, OCT_ERR_SHAPE, "input has %d dims, 3 to %d are needed", rank,
                             OCT_MAX_RANK);
    if (w && w->rank >= 0 && w->rank != rank)
        return oct_node_fail(n, OCT_ERR_SHAPE, "weight has %d dims, input has %d", w->rank, rank);
    g->n = rank - 2;
    if (x->rank >= 0) g->batch = x->dim[0], g->c_in = x->dim[1];
    for (int d = 0; d < g->n; d++) {
        g->in[d] = x->rank >= 0 ? x->dim[d + 2] : -1;
        g->out[d] = -1;
        if (g->in[d] > INT64_MAX / 4) return oct_node_fail(n, OCT_ERR_SHAPE, "input is too large");
    }
    OCT_TRY(read_or_fill(n, "strides", g->n, 1, 1, g->stride));
    OCT_TRY(read_or_fill(n, "dilations", g->n, 1, 1, g->dilation));
    OCT_TRY(read_or_fill(n, "pads", 2 * g->n, 0, 0, pads));
    memcpy(g->pad_begin, pads, (size_t)g->n * sizeof(*pads));
    memcpy(g->pad_end, pads + g->n, (size_t)g->n * sizeof(*pads));

    OCT_TRY(read_ints(n, "kernel_shape", g->n, 1, g->kernel, &found));
    if (!found && !w) return oct_node_fail(n, OCT_ERR_FORMAT, "kernel_shape is missing");
    for (int d = 0; d < g->n && w; d++) {
        const int64_t k = w->rank >= 0 ? w->dim[d + 2] : -1;

        if (k == 0 || k > MAX_EXTENT)
            return oct_node_fail(n, OCT_ERR_SHAPE, "kernel has size %lld", (long long)k);
        if (!found)
            g->kernel[d] = k;
        else if (k >= 0 && k != g->kernel[d])
            return oct_node_fail(n, OCT_ERR_SHAPE, "kernel_shape says %lld, the weight %lld",
                                 (long long)g->kernel[d], (long long)k);
    }
    return OCT_OK;
}

/* From the first element a window reads to the last, plus one. */
static int64_t extent(const oct_conv_geometry *g, int d)
{
    return (g->kernel[d] - 1) * g->dilation[d] + 1;
}

static void split_padding(oct_conv_geometry *g, int d, int64_t total, bool more_at_end)
{
    g->pad_begin[d] = more_at_end ? total / 2 : total - total / 2;
    g->pad_end[d] = total - g->pad_begin[d];
}

/* auto_pad SAME: as many outputs as strides begin in the input, and the padding that needs. */
static void pad_same(oct_conv_geometry *g, int d, bool more_at_end)
{
    const int64_t s = g->stride[d];

    g->pad_begin[d] = g->pad_end[d] = -1;
    if (g->in[d] >= 0) g->out[d] = (g->in[d] + s - 1) / s;
    if (g->kernel[d] < 0) return;
    if (g->in[d] >= 0)
        split_padding(g, d, OCT_MAX((g->out[d] - 1) * s + extent(g, d) - g->in[d], 0), more_at_end);
    else if (s == 1 || extent(g, d) == 1) /* the same for inputs of any size */
        split_padding(g, d, extent(g, d) - 1, more_at_end);
}

/* Output sizes of windows that slide over the input. */
static oct_status slide(const oct_node *n, auto_pad mode, bool ceil_mode, oct_conv_geometry *g)
{
    for (int d = 0; d < g->n; d++) {
        const int64_t s = g->stride[d];
        int64_t room;

        if (mode >= PAD_SAME_UPPER) {
            pad_same(g, d, mode == PAD_SAME_UPPER);
            continue;
        }
        if (mode == PAD_VALID) g->pad_begin[d] = g->pad_end[d] = 0;
        if (g->in[d] < 0 || g->kernel[d] < 0) continue;
        room = g->in[d] + g->pad_begin[d] + g->pad_end[d] - extent(g, d);
        if (room < 0) {
            if (g->in[d] > 0 && !ceil_mode)
                return oct_node_fail(n, OCT_ERR_SHAPE,
                                     "window of %lld is larger than the padded input of %lld",
                                     (long long)extent(g, d), (long long)(room + extent(g, d)));
            g->out[d] = g->in[d] > 0 && room > -s ? 1 : 0;
            continue;
        }
        g->out[d] = room / s + 1;
        if (ceil_mode && mode == PAD_NOTSET && room % s != 0) {
            g->out[d]++;
            /* A window that starts in the padding after the input does not count. */
            if ((g->out[d] - 1) * s >= g->in[d] + g->pad_begin[d]) g->out[d]--;
        }
    }
    return OCT_OK;
}

/* group, and the channels of x against those of the weight. */
static oct_status read_group(const oct_node *n, int64_t w_channels, oct_conv_geometry *g)
{
    g->group = attr_int(n, "group", 1);
    if (g->group < 1 || g->group > MAX_EXTENT)
        return oct_node_fail(n, OCT_ERR_SHAPE, "group is %lld", (long long)g->group);
    if (g->c_in >= 0 && g->c_in % g->group != 0)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld channels do not divide into %lld groups",
                             (long long)g->c_in, (long long)g->group);
    if (w_channels >= 0 && g->c_in >= 0 && g->c_in / g->group != w_channels)
        return oct_node_fail(
            n, OCT_ERR_SHAPE, "input has %lld channels, weight is for %lld (%lld in each group)",
            (long long)g->c_in, (long long)(w_channels * g->group), (long long)w_channels);
    if (w_channels >= 0) g->c_in = w_channels * g->group; /* known, even if the input's is not */
    return OCT_OK;
}

oct_status oct_conv_geometry_conv(const oct_node *n, const oct_type *x, const oct_type *w,
                                  oct_conv_geometry *g)
{
    auto_pad mode;

    OCT_TRY(read_common(n, x, w, g));
    if (g->n < 0) return OCT_OK;
    if (w->rank >= 0 && w->dim[1] > MAX_EXTENT)
        return oct_node_fail(n, OCT_ERR_SHAPE, "weight has %lld channels", (long long)w->dim[1]);
    OCT_TRY(read_group(n, w->rank >= 0 ? w->dim[1] : -1, g));
    g->c_out = w->rank >= 0 ? w->dim[0] : -1;
    if (g->c_out >= 0 && g->c_out % g->group != 0)
        return oct_node_fail(n, OCT_ERR_SHAPE, "%lld filters do not divide into %lld groups",
                             (long long)g->c_out, (long long)g->group);
    OCT_TRY(read_auto_pad(n, &mode));
    return slide(n, mode, false, g);
}

oct_status oct_conv_geometry_pool(const oct_node *n, const oct_type *x, oct_conv_geometry *g)
{
    auto_pad mode;

    OCT_TRY(read_common(n, x, NULL, g));
    if (g->n < 0) return OCT_OK;
    g->c_out = g->group = g->c_in;
    OCT_TRY(read_auto_pad(n, &mode));
    return slide(n, mode, attr_int(n, "ceil_mode", 0) != 0, g);
}

/* One axis of ConvTranspose; `want` is output_shape's entry, or -1. */
static oct_status spread(const oct_node *n, auto_pad mode, int64_t out_pad, int64_t want, int d,
                         oct_conv_geometry *g)
{
    int64_t reach;

    if (g->in[d] > INT64_MAX / 4 / MAX_EXTENT)
        return oct_node_fail(n, OCT_ERR_SHAPE, "input is too large");
    if (want < 0 && mode >= PAD_SAME_UPPER && g->in[d] >= 0) want = g->in[d] * g->stride[d];
    if (mode == PAD_VALID) g->pad_begin[d] = g->pad_end[d] = 0;
    if (mode >= PAD_SAME_UPPER || want >= 0) g->pad_begin[d] = g->pad_end[d] = -1; /* see below */
    g->out[d] = want;
    if (g->in[d] < 0 || g->kernel[d] < 0) return OCT_OK;
    reach = g->in[d] > 0 ? (g->in[d] - 1) * g->stride[d] + extent(g, d) + out_pad : 0;
    if (want >= 0) {
        split_padding(g, d, OCT_MAX(reach - want, 0), mode == PAD_SAME_UPPER);
        return OCT_OK;
    }
    g->out[d] = reach - g->pad_begin[d] - g->pad_end[d];
    if (g->out[d] < 0 && g->in[d] > 0)
        return oct_node_fail(n, OCT_ERR_SHAPE, "pads are larger than the output");
    g->out[d] = OCT_MAX(g->out[d], 0);
    return OCT_OK;
}

oct_status oct_conv_geometry_transpose(const oct_node *n, const oct_type *x, const oct_type *w,
                                       oct_conv_geometry *g)
{
    int64_t out_pad[OCT_MAX_SPATIAL], want[OCT_MAX_RANK], *spatial_want = want;
    const oct_attr *shape = oct_node_attr(n, "output_shape");
    int n_want;
    auto_pad mode;

    OCT_TRY(read_common(n, x, w, g));
    if (g->n < 0) return OCT_OK;
    OCT_TRY(read_group(n, -1, g));
    if (w->rank >= 0 && w->dim[0] >= 0 && g->c_in >= 0 && w->dim[0] != g->c_in)
        return oct_node_fail(n, OCT_ERR_SHAPE, "input has %lld channels, weight is for %lld",
                             (long long)g->c_in, (long long)w->dim[0]);
    if (w->rank >= 0 && w->dim[0] >= 0) g->c_in = w->dim[0];
    if (w->rank >= 0 && w->dim[1] > MAX_EXTENT)
        return oct_node_fail(n, OCT_ERR_SHAPE, "weight has %lld filters", (long long)w->dim[1]);
    if (w->rank >= 0 && w->dim[1] >= 0) g->c_out = w->dim[1] * g->group;
    OCT_TRY(read_auto_pad(n, &mode));
    OCT_TRY(read_or_fill(n, "output_padding", g->n, 0, 0, out_pad));
    /* Some writers put batch and channels first in output_shape. */
    n_want = shape && shape->n == g->n + 2 ? g->n + 2 : g->n;
    if (shape && shape->n == 0) n_want = 0;
    for (int d = 0; d < OCT_MAX_RANK; d++)
        want[d] = -1;
    if (n_want) OCT_TRY(read_or_fill(n, "output_shape", n_want, 0, -1, want));
    if (n_want > g->n) spatial_want = want + 2;
    for (int d = 0; d < g->n; d++)
        OCT_TRY(spread(n, mode, out_pad[d], spatial_want[d], d, g));
    return OCT_OK;
}

oct_type oct_conv_geometry_type(const oct_conv_geometry *g, oct_dtype dtype)
{
    oct_type t = oct_type_unknown(dtype);

    if (g->n < 0) return t;
    t.rank = g->n + 2;
    t.dim[0] = g->batch;
    t.dim[1] = g->c_out;
    for (int d = 0; d < g->n; d++)
        t.dim[d + 2] = g->out[d];
    return t;
}

static int64_t product(const int64_t *dims, int n)
{
    int64_t p = 1;

    for (int d = 0; d < n; d++)
        p *= dims[d];
    return p;
}

int64_t oct_conv_geometry_in_size(const oct_conv_geometry *g)
{
    return product(g->in, g->n);
}

int64_t oct_conv_geometry_out_size(const oct_conv_geometry *g)
{
    return product(g->out, g->n);
}

int64_t oct_conv_geometry_kernel_size(const oct_conv_geometry *g)
{
    return product(g->kernel, g->n);
}

/* Stays at INT64_MAX, unless by a zero. */
static void multiply(int64_t *n, int64_t by)
{
    if (!oct_mul_i64(*n, by, n)) *n = INT64_MAX;
}

int64_t oct_conv_geometry_macs(const oct_conv_geometry *g, bool is_transpose)
{
    const int64_t *pixels = is_transpose ? g->in : g->out;
    int64_t n = g->batch;

    if (g->n < 0 || g->batch < 0 || g->c_in < 0 || g->c_out < 0) return 0;
    multiply(&n, g->c_in / g->group);
    multiply(&n, g->c_out);
    for (int d = 0; d < g->n; d++) {
        if (pixels[d] < 0 || g->kernel[d] < 0) return 0;
        multiply(&n, pixels[d]);
        multiply(&n, g->kernel[d]);
    }
    return n;
}

int64_t oct_conv_geometry_taps(const oct_conv_geometry *g, bool with_pads)
{
    int64_t n = g->batch;

    if (g->n < 0 || g->batch < 0 || g->c_out < 0) return 0;
    multiply(&n, g->c_out);
    for (int d = 0; d < g->n; d++) {
        if (g->in[d] < 0 || g->out[d] < 0 || g->kernel[d] < 0) return 0;
        multiply(&n, g->out[d]);
        multiply(&n, with_pads ? g->kernel[d]
                               : OCT_MIN(g->kernel[d], oct_ceil_div(g->in[d], g->dilation[d])));
    }
    return n;
}

bool oct_conv_geometry_to_2d(oct_conv_geometry *g)
{
    if (g->n < 1 || g->n > 2 || g->batch < 1 || g->c_in < 1 || g->c_out < 1) return false;
    for (int d = 0; d < g->n; d++)
        if (g->in[d] < 1 || g->out[d] < 1) return false;
    if (g->n == 1) {
        int64_t *const lists[] = {g->in, g->out, g->kernel, g->stride, g->dilation};

        for (size_t i = 0; i < OCT_COUNT(lists); i++) {
            lists[i][1] = lists[i][0];
            lists[i][0] = 1;
        }
        g->pad_begin[1] = g->pad_begin[0];
        g->pad_end[1] = g->pad_end[0];
        g->pad_begin[0] = g->pad_end[0] = 0;
        g->n = 2;
    }
    return true;
}

bool oct_conv_pads_are_known(const oct_conv_geometry *g)
{
    for (int d = 0; d < g->n; d++)
        if (g->pad_begin[d] < 0 || g->pad_end[d] < 0) return false;
    return g->n > 0;
}

bool oct_conv_is_pointwise(const oct_conv_geometry *g)
{
    for (int d = 0; d < g->n; d++)
        if (g->kernel[d] != 1 || g->stride[d] != 1 || g->pad_begin[d] || g->pad_end[d])
            return false;
    return g->n > 0;
}

void oct_conv_window(const oct_conv_geometry *g, int d, int64_t o, int64_t *from, int64_t *to)
{
    const int64_t first = o * g->stride[d] - g->pad_begin[d], step = g->dilation[d];
    const int64_t lo = first < 0 ? (-first + step - 1) / step : 0;
    const int64_t hi = first < g->in[d] ? (g->in[d] - first + step - 1) / step : 0;

    *from = OCT_MIN(lo, g->kernel[d]);
    *to = OCT_MAX(OCT_MIN(hi, g->kernel[d]), *from);
}

float *oct_conv_sample(const oct_conv_geometry *g, int64_t group, const float *x, int64_t place,
                       float *out)
{
    const int64_t n = g->c_in / g->group;
    const int64_t top = place / g->out[1] * g->stride[0] - g->pad_begin[0];
    const int64_t left = place % g->out[1] * g->stride[1] - g->pad_begin[1];

    for (int64_t c = group * n; c < (group + 1) * n; c++)
        for (int64_t i = 0; i < g->kernel[0]; i++)
            for (int64_t j = 0; j < g->kernel[1]; j++) {
                const int64_t h = top + i * g->dilation[0], v = left + j * g->dilation[1];
                const bool is_in = h >= 0 && h < g->in[0] && v >= 0 && v < g->in[1];

                *out++ = is_in ? x[(c * g->in[0] + h) * g->in[1] + v] : 0;
            }
    return out;
}

int64_t oct_conv_place(const oct_conv_geometry *g, int64_t n, int64_t picture, int64_t i)
{
    const int64_t size = oct_conv_geometry_out_size(g);

    return (i * size / n + picture * 37) % size;
}
