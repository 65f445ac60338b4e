/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and resizing. */
#include "torch/aten.h"

/* Spatial dimensions by the operator's name: the digit in "max_pool2d". */
static int spatial_rank(const oct_aten *a)
{
    for (const char *s = a->n->target; *s; s++)
        if (*s >= '1' && *s <= '3' && s[1] == 'd') return *s - '0';
    return 2;
}

typedef struct window {
    int rank;
    bool was_single;
    int64_t kernel[OCT_MAX_RANK], stride[OCT_MAX_RANK], pads[2 * OCT_MAX_RANK];
} window;

/* The input, with a batch in front, and the window; a missing stride is the kernel's size. */
static oct_value *read_window(oct_aten *a, window *w)
{
    oct_value *x = oct_aten_tensor(a, "self");
    int64_t pad[OCT_MAX_RANK];

    *w = (window){.rank = spatial_rank(a)};
    oct_aten_spatial(a, "kernel_size", w->rank, 1, w->kernel);
    oct_aten_spatial(a, "padding", w->rank, 0, pad);
    if (oct_aten_ints(a, "stride", w->stride))
        oct_aten_spatial(a, "stride", w->rank, 1, w->stride);
    else
        for (int i = 0; i < w->rank; i++)
            w->stride[i] = w->kernel[i];
    for (int i = 0; i < w->rank; i++)
        w->pads[i] = w->pads[i + w->rank] = pad[i];
    w->was_single = oct_aten_rank(a, x) == w->rank + 1;
    return w->was_single ? oct_aten_unsqueeze(a, x, 0) : x;
}

static oct_node *pool_node(oct_aten *a, const oct_op *op, oct_value *x, const window *w)
{
    oct_node *n = oct_aten_node(a, op, &x, 1, 1);

    oct_emit_ints(a->b, n, "kernel_shape", w->kernel, w->rank);
    oct_emit_ints(a->b, n, "strides", w->stride, w->rank);
    oct_emit_ints(a->b, n, "pads", w->pads, 2 * w->rank);
    return n;
}

static oct_value *unbatch(oct_aten *a, oct_value *y, const window *w)
{
    return w->was_single ? oct_aten_squeeze(a, y, 0) : y;
}

void oct_aten_max_pool(oct_aten *a)
{
    int64_t dilation[OCT_MAX_RANK];
    window w;
    oct_value *x = read_window(a, &w);
    oct_node *n = pool_node(a, &oct_op_max_pool, x, &w);

    oct_aten_spatial(a, "dilation", w.rank, 1, dilation);
    oct_emit_ints(a->b, n, "dilations", dilation, w.rank);
    oct_emit_int(a->b, n, "ceil_mode", oct_aten_bool(a, "ceil_mode", false));
    a->out[0] = unbatch(a, oct_aten_done(a, n), &w);
}

void oct_aten_avg_pool(oct_aten *a)
{
    const double divisor = oct_aten_f64(a, "divisor_override", 0);
    double area = 1;
    window w;
    oct_value *x = read_window(a, &w);
    oct_node *n = pool_node(a, &oct_op_average_pool, x, &w);
    oct_value *y;

    oct_emit_int(a->b, n, "ceil_mode", oct_aten_bool(a, "ceil_mode", false));
    oct_emit_int(a->b, n, "count_include_pad", oct_aten_bool(a, "count_include_pad", true));
    y = unbatch(a, oct_aten_done(a, n), &w);
    for (int i = 0; i < w.rank; i++)
        area *= (double)w.kernel[i];
    a->out[0] =
        divisor == 0 || !y ? y : ATEN2(mul, y, oct_aten_scalar(a, y->type.dtype, area / divisor));
}

/* --- adaptive pooling --- */

/* Row i of the matrix averages inputs floor(i * in / out) to ceil((i + 1) * in / out). */
static oct_value *average_matrix(oct_aten *a, int64_t in, int64_t out, bool transposed)
{
    const int64_t dims[] = {transposed ? in : out, transposed ? out : in};
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 2, dims);
    oct_tensor *t = NULL;
    oct_value *v;
    float *m;

    if (a->b->status || (a->b->status = oct_tensor_make(a->t->ctx, &type, &t))) return NULL;
    m = t->data;
    for (int64_t i = 0; i < out; i++) {
        const int64_t from = i * in / out, to = oct_ceil_div((i + 1) * in, out);

        for (int64_t k = from; k < to; k++)
            m[transposed ? k * out + i : i * in + k] = 1.0f / (float)(to - from);
    }
    if (!(v = oct_value_const(a->t->g, NULL, t))) a->b->status = OCT_ERR_MEMORY;
    return v;
}

static bool fits_size(int64_t v)
{
    return v > 0 && v <= 4096;
}

/* Windows of different sizes, as products of matrices. */
static oct_value *uneven_average(oct_aten *a, oct_value *x, const int64_t *in, const int64_t *out)
{
    if (!fits_size(in[0]) || !fits_size(in[1]) || !fits_size(out[0]) || !fits_size(out[1])) {
        oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "adaptive pooling of sizes that are not known");
        return NULL;
    }
    x = ATEN2(mat_mul, x, average_matrix(a, in[1], out[1], true));
    return ATEN2(mat_mul, average_matrix(a, in[0], out[0], false), x);
}

static oct_value *adaptive(oct_aten *a, const oct_op *global, const oct_op *pool)
{
    oct_value *x = oct_aten_tensor(a, "self");
    const int rank = spatial_rank(a), first = oct_aten_rank(a, x) - rank;
    window w = {.rank = rank, .was_single = first == 1};
    int64_t out[OCT_MAX_RANK], in[OCT_MAX_RANK];
    bool is_one = true, is_even = true;
    oct_value *y;

    oct_aten_spatial(a, "output_size", rank, 1, out);
    if (w.was_single) x = oct_aten_unsqueeze(a, x, 0);
    for (int i = 0; i < rank; i++) {
        in[i] = oct_aten_dim(x, 2 + i);
        is_one = is_one && out[i] == 1;
        is_even = is_even && out[i] > 0 && in[i] > 0 && in[i] % out[i] == 0;
        w.kernel[i] = w.stride[i] = is_even ? in[i] / out[i] : 1;
    }
    if (is_one)
        y = oct_aten_emit(a, global, x, NULL, NULL);
    else if (is_even)
        y = oct_aten_done(a, pool_node(a, pool, x, &w));
    else
        y = rank == 2 && pool == &oct_op_average_pool ? uneven_average(a, x, in, out) : NULL;
    if (!y) oct_aten_fail(a, OCT_ERR_UNSUPPORTED, "adaptive pooling to these sizes");
    return unbatch(a, y, &w);
}

void oct_aten_adaptive_avg_pool(oct_aten *a)
{
    a->out[0] = adaptive(a, &oct_op_global_average_pool, &oct_op_average_pool);
}

void oct_aten_adaptive_max_pool(oct_aten *a)
{
    a->out[0] = adaptive(a, &oct_op_global_max_pool, &oct_op_max_pool);
}

/* --- resizing --- */

/* Factors for all dimensions, if the caller gave factors: torch computes coordinates with them. */
static oct_value *scales(oct_aten *a, int rank)
{
    const oct_arg *arg = oct_aten_arg(a, "scale_factors");
    const int64_t n = rank + 2;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 1, &n);
    oct_tensor *t = NULL;
    oct_value *v;

    if (!arg || arg->kind != OCT_ARG_LIST || arg->n != rank) return NULL;
    if (a->b->status || (a->b->status = oct_tensor_make(a->t->ctx, &type, &t))) return NULL;
    for (int i = 0; i < rank + 2; i++)
        ((float *)t->data)[i] = i < 2 ? 1.0f : (float)arg->list[i - 2].f;
    if (!(v = oct_value_const(a->t->g, NULL, t))) a->b->status = OCT_ERR_MEMORY;
    return v;
}

static oct_node *resize_node(oct_aten *a)
{
    oct_value *x = oct_aten_tensor(a, oct_aten_has(a, "input") ? "input" : "self");
    const int rank = oct_aten_rank(a, x) - 2;
    const char *size = oct_aten_has(a, "output_size") ? "output_size" : "size";
    oct_value *in[] = {x, NULL, scales(a, rank), NULL};
    int64_t known[OCT_MAX_RANK], axes[OCT_MAX_RANK];
    oct_node *n;
    int n_sizes;

    if (in[2]) return oct_aten_node(a, &oct_op_resize, in, 3, 1);
    in[3] = oct_aten_sizes(a, size, known, &n_sizes);
    if (n_sizes != rank) oct_aten_fail(a, OCT_ERR_FORMAT, "sizes of %d dimensions", n_sizes);
    if (a->b->status) return NULL;
    if (oct_aten_dim(x, 0) >= 0 && oct_aten_dim(x, 1) >= 0) {
        oct_value *const parts[] = {oct_aten_ints_of(a, 2, oct_aten_dim(x, 0), oct_aten_dim(x, 1)),
                                    in[3]};
        int64_t all[OCT_MAX_RANK] = {oct_aten_dim(x, 0), oct_aten_dim(x, 1)};

        for (int i = 0; i < rank; i++)
            all[i + 2] = known[i];
        in[3] = in[3]->data ? oct_ints(a->b, all, rank + 2) : oct_aten_concat(a, parts, 2, 0);
        return oct_aten_node(a, &oct_op_resize, in, 4, 1);
    }
    for (int i = 0; i < rank; i++)
        axes[i] = i + 2;
    n = oct_aten_node(a, &oct_op_resize, in, 4, 1);
    oct_emit_ints(a->b, n, "axes", axes, rank);
    return n;
}

static void resize(oct_aten *a, const char *mode, const char *coordinates, bool antialias)
{
    oct_node *n = resize_node(a);

    oct_emit_str(a->b, n, "mode", mode);
    oct_emit_str(a->b, n, "coordinate_transformation_mode", coordinates);
    if (antialias) {
        oct_emit_int(a->b, n, "antialias", 1);
        oct_emit_int(a->b, n, "exclude_outside", 1);
    }
    if (*mode == 'n')
        oct_emit_str(a->b, n, "nearest_mode", *coordinates == 'a' ? "floor" : "round_prefer_ceil");
    a->out[0] = oct_aten_done(a, n);
}

void oct_aten_upsample_nearest(oct_aten *a)
{
    resize(a, "nearest", "asymmetric", false);
}

void oct_aten_upsample_nearest_exact(oct_aten *a)
{
    resize(a, "nearest", "half_pixel", false);
}

static const char *corners(oct_aten *a)
{
    return oct_aten_bool(a, "align_corners", false) ? "align_corners" : "pytorch_half_pixel";
}

void oct_aten_upsample_linear(oct_aten *a)
{
    resize(a, "linear", corners(a), false);
}

void oct_aten_upsample_linear_aa(oct_aten *a)
{
    resize(a, "linear", corners(a), true);
}

void oct_aten_upsample_cubic(oct_aten *a)
{
    resize(a, "cubic", corners(a), false);
}

void oct_aten_upsample_cubic_aa(oct_aten *a)
{
    resize(a, "cubic", corners(a), true);
}

void oct_aten_grid_sampler(oct_aten *a)
{
    static const char *const modes[] = {"linear", "nearest", "cubic"};
    static const char *const pads[] = {"zeros", "border", "reflection"};
    const int64_t mode = oct_aten_int(a, "interpolation_mode", 0);
    const int64_t pad = oct_aten_int(a, "padding_mode", 0);
    oct_value *const in[] = {oct_aten_tensor(a, "input"), oct_aten_tensor(a, "grid")};
    oct_node *n = oct_aten_node(a, &oct_op_grid_sample, in, 2, 1);

    if (mode < 0 || mode > 2 || pad < 0 || pad > 2) {
        oct_aten_fail(a, OCT_ERR_FORMAT, "an unknown mode");
        return;
    }
    oct_emit_str(a->b, n, "mode", modes[mode]);
    oct_emit_str(a->b, n, "padding_mode", pads[pad]);
    oct_emit_int(a->b, n, "align_corners", oct_aten_bool(a, "align_corners", false));
    a->out[0] = oct_aten_done(a, n);
}
