/* SPDX-License-Identifier: Apache-2.0 */
/* Inner loops of training, compiled once for each instruction set. */
#include "exec/simd/simd_train.h"

#include "exec/simd/simd_conv.h"
#include "exec/simd/simd_slope.h"

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define MR OCT_OUTER_CHANNELS

/* --- outer products --- */

/* NV vectors of dy, P pixels at once, each with accumulators of its own: additions that depend on
 * each other are several cycles apart. Sums start at zero: the rounding error grows with the number
 * of pixels of one call, not with all of them. */
INLINE void outer_block(const oct_outer *o, const int NV, const int P)
{
    const int64_t width = (int64_t)NV * VW;
    vf acc[2][MR][OCT_CONV_MAX_VEC] = {0};

    for (int64_t r = 0; r < o->rows; r++) {
        const float *x = o->x + r * o->x_row, *dy = o->dy + r * o->columns * o->dy_pixel;
        int64_t i = 0;

        for (; i + P <= o->columns; i += P)
            UNROLL for (int p = 0; p < P; p++)
            {
                vf d[OCT_CONV_MAX_VEC];

                UNROLL for (int v = 0; v < NV; v++) d[v] = load(dy + v * VW);
                UNROLL for (int c = 0; c < MR; c++)
                {
                    const vf xv = splat(x[c]);

                    UNROLL for (int v = 0; v < NV; v++) acc[p][c][v] += xv * d[v];
                }
                x += o->x_pixel;
                dy += o->dy_pixel;
            }
        for (; i < o->columns; i++, x += o->x_pixel, dy += o->dy_pixel)
            UNROLL for (int c = 0; c < MR; c++) UNROLL for (int v = 0; v < NV; v++) acc[0][c][v] +=
                splat(x[c]) * load(dy + v * VW);
    }
    UNROLL for (int c = 0; c < MR; c++)
    {
        UNROLL for (int v = 0; v < NV; v++)
        {
            float *to = o->acc + c * width + v * VW;
            const vf sum = P > 1 ? acc[0][c][v] + acc[1][c][v] : acc[0][c][v];

            store(to, load(to) + sum);
        }
    }
}

static void outer(const oct_outer *o)
{
    switch (o->n_vec) {
    case 1:
        outer_block(o, 1, 2);
        break;
    case 2:
        outer_block(o, 2, VW == 16 ? 2 : 1);
        break;
    case 3:
        outer_block(o, 3, 1);
        break;
#if VW == 16
    case 4:
        outer_block(o, 4, 1);
        break;
#endif
    default:
        break;
    }
}

/* --- depthwise --- */

INLINE vf read(const float *p, int64_t lanes)
{
    return lanes >= VW ? load(p) : load_part(p, lanes);
}

INLINE void write(float *p, vf v, int64_t lanes)
{
    if (lanes >= VW)
        store(p, v);
    else
        store_part(p, v, lanes);
}

static void dot(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t n,
                float *acc, int64_t lanes)
{
    for (int64_t i = 0; i < lanes; i += VW) {
        const int64_t left = lanes - i;
        const float *p = a + i, *q = b + i;
        vf s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        int64_t k = 0;

        if (left >= VW)
            for (; k + 4 <= n; k += 4, p += 4 * a_step, q += 4 * b_step) {
                s0 += load(p) * load(q);
                s1 += load(p + a_step) * load(q + b_step);
                s2 += load(p + 2 * a_step) * load(q + 2 * b_step);
                s3 += load(p + 3 * a_step) * load(q + 3 * b_step);
            }
        for (; k < n; k++, p += a_step, q += b_step)
            s0 += read(p, left) * read(q, left);
        write(acc + i, read(acc + i, left) + ((s0 + s1) + (s2 + s3)), left);
    }
}

/* Half a vector of floats, as doubles. */
#define VD (VW / 2)
typedef float half __attribute__((vector_size(VD * 4)));
typedef double vd __attribute__((vector_size(VD * 8)));

/* --- convolution with sums in double --- */

INLINE vd load_double(const double *p)
{
    vd v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* PX pixels of four vectors of channels. */
INLINE void double_block(const oct_conv_sums *s, const double *x, const double *w, int64_t first,
                         float *y, const int PX)
{
    const int64_t left = s->c_out - first;
    vd acc[3][4];

    UNROLL for (int v = 0; v < 4; v++)
    {
        const vd bias = load_double(w + s->rows * s->terms * s->lanes + v * VD);

        UNROLL for (int i = 0; i < PX; i++) acc[i][v] = bias;
    }
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t t = 0; t < s->terms; t++, w += s->lanes) {
            vd wv[4];

            UNROLL for (int v = 0; v < 4; v++) wv[v] = load_double(w + v * VD);
            UNROLL for (int i = 0; i < PX; i++)
            {
                const vd xv = x[r * s->row + i * s->pixel + t] - (vd){0};

                UNROLL for (int v = 0; v < 4; v++) acc[i][v] += xv * wv[v];
            }
        }
    UNROLL for (int i = 0; i < PX; i++)
    {
        UNROLL for (int v = 0; v < 4; v++)
        {
            const half out = __builtin_convertvector(acc[i][v], half);

            if (left >= (v + 1) * VD)
                memcpy(y + i * s->pitch + v * VD, &out, sizeof(out));
            else if (left > v * VD)
                memcpy(y + i * s->pitch + v * VD, &out, (size_t)(left - v * VD) * sizeof(float));
        }
    }
}

static void conv_double(const oct_conv_sums *s)
{
    for (int64_t i = 0; i < s->n; i += 3)
        for (int64_t first = 0; first < s->c_out; first += 4 * VD) {
            const double *x = s->x + i * s->pixel, *w = s->w + first;
            float *y = s->y + i * s->pitch + first;

            if (s->n - i >= 3)
                double_block(s, x, w, first, y, 3);
            else if (s->n - i == 2)
                double_block(s, x, w, first, y, 2);
            else
                double_block(s, x, w, first, y, 1);
        }
}

/* --- normalization --- */

/* Two independent sums: additions that depend on each other are several cycles apart. */
static void sums(const float *x, int64_t pitch, int64_t n, float *sum, int64_t lanes)
{
    for (int64_t i = 0; i < lanes; i += VW) {
        const int64_t left = lanes - i;
        const float *p = x + i;
        vf s = {0}, t = {0};
        int64_t k = 0;

        if (left >= VW)
            for (; k + 2 <= n; k += 2, p += 2 * pitch) {
                s += load(p);
                t += load(p + pitch);
            }
        for (; k < n; k++, p += pitch)
            s += read(p, left);
        write(sum + i, read(sum + i, left) + (s + t), left);
    }
}

INLINE vd widen(const float *p)
{
    half v;

    memcpy(&v, p, sizeof(v));
    return __builtin_convertvector(v, vd);
}

INLINE void add_to(double *p, vd v)
{
    v += load_double(p);
    memcpy(p, &v, sizeof(v));
}

static void moments(const float *x, int64_t pitch, int64_t n, double *sum, double *square,
                    int64_t lanes)
{
    int64_t i = 0;

    for (; i + VD <= lanes; i += VD) {
        const float *p = x + i;
        vd s = {0}, q = {0}, s1 = {0}, q1 = {0};
        int64_t k = 0;

        for (; k + 2 <= n; k += 2, p += 2 * pitch) {
            const vd d = widen(p), e = widen(p + pitch);

            s += d;
            s1 += e;
            q += d * d;
            q1 += e * e;
        }
        if (k < n) {
            const vd d = widen(p);

            s += d;
            q += d * d;
        }
        add_to(sum + i, s + s1);
        add_to(square + i, q + q1);
    }
    for (; i < lanes; i++)
        for (int64_t k = 0; k < n; k++) {
            const double d = (double)x[k * pitch + i];

            sum[i] += d;
            square[i] += d * d;
        }
}

INLINE void norm_rows(oct_act_kind kind, const oct_norm *m, const float *x, int64_t x_pitch,
                      float *y, int64_t y_pitch, int64_t n, int64_t lanes)
{
    const vf a = splat(m->act.a), b = splat(m->act.b);

    for (int64_t i = 0; i < lanes; i += VW) {
        const int64_t left = lanes - i;
        const vf mean = read(m->mean + i, left);
        const vf mul = read(m->mul + i, left), add = read(m->add + i, left);

        for (int64_t k = 0; k < n; k++)
            write(y + k * y_pitch + i,
                  apply(kind, (read(x + k * x_pitch + i, left) - mean) * mul + add, a, b), left);
    }
}

static void norm(const oct_norm *m, const float *x, int64_t x_pitch, float *y, int64_t y_pitch,
                 int64_t n, int64_t lanes)
{
#define ROWS_OF(kind) norm_rows(kind, m, x, x_pitch, y, y_pitch, n, lanes)
    if (m->act.kind == OCT_ACT_NONE) ROWS_OF(OCT_ACT_NONE);
    FOR_ACT(m->act.kind, ROWS_OF)
#undef ROWS_OF
}

INLINE void sums_of(oct_act_kind kind, const oct_norm *m, const float *x, int64_t x_pitch,
                    const float *dy, int64_t dy_pitch, int64_t n, float *sum, float *dot_,
                    int64_t lanes)
{
    const vf a = splat(m->act.a), b = splat(m->act.b);

    for (int64_t i = 0; i < lanes; i += VW) {
        const int64_t left = lanes - i;
        const vf mean = read(m->mean + i, left), scale = read(m->inv_std + i, left);
        const vf mul = read(m->mul + i, left), add = read(m->add + i, left);
        vf s = {0}, d = {0};

        for (int64_t k = 0; k < n; k++) {
            const vf xv = read(x + k * x_pitch + i, left);
            const vf dz =
                read(dy + k * dy_pitch + i, left) * slope(kind, (xv - mean) * mul + add, a, b);

            s += dz;
            d += dz * ((xv - mean) * scale);
        }
        write(sum + i, s, left);
        write(dot_ + i, d, left);
    }
}

static void norm_sums(const oct_norm *m, const float *x, int64_t x_pitch, const float *dy,
                      int64_t dy_pitch, int64_t n, float *sum, float *dot_, int64_t lanes)
{
#define SUMS(kind) sums_of(kind, m, x, x_pitch, dy, dy_pitch, n, sum, dot_, lanes)
    if (m->act.kind == OCT_ACT_NONE) SUMS(OCT_ACT_NONE);
    FOR_ACT(m->act.kind, SUMS)
#undef SUMS
}

INLINE void grad_rows(oct_act_kind kind, const oct_norm *m, const float *x, int64_t x_pitch,
                      const float *dy, int64_t dy_pitch, float *dx, int64_t dx_pitch, int64_t n,
                      int64_t lanes)
{
    const vf a = splat(m->act.a), b = splat(m->act.b);

    for (int64_t i = 0; i < lanes; i += VW) {
        const int64_t left = lanes - i;
        const vf mul = read(m->mul + i, left), add = read(m->add + i, left);
        const vf mean = read(m->mean + i, left), scale = read(m->inv_std + i, left);
        const vf dz_mean = read(m->dz + i, left), dhat = read(m->dhat + i, left);

        for (int64_t k = 0; k < n; k++) {
            const vf xv = read(x + k * x_pitch + i, left);
            const vf dz =
                read(dy + k * dy_pitch + i, left) * slope(kind, (xv - mean) * mul + add, a, b);
            const vf hat = (xv - mean) * scale;

            write(dx + k * dx_pitch + i, mul * (dz - dz_mean - hat * dhat), left);
        }
    }
}

static void norm_grad(const oct_norm *m, const float *x, int64_t x_pitch, const float *dy,
                      int64_t dy_pitch, float *dx, int64_t dx_pitch, int64_t n, int64_t lanes)
{
#define ROWS_OF(kind) grad_rows(kind, m, x, x_pitch, dy, dy_pitch, dx, dx_pitch, n, lanes)
    if (m->act.kind == OCT_ACT_NONE) ROWS_OF(OCT_ACT_NONE);
    FOR_ACT(m->act.kind, ROWS_OF)
#undef ROWS_OF
}

INLINE void act_grad_row(oct_act_kind kind, const oct_act *act, const float *x, const float *dy,
                         float *dx, int64_t n)
{
    const vf a = splat(act->a), b = splat(act->b);

    for (int64_t i = 0; i < n; i += VW)
        write(dx + i, read(dy + i, n - i) * slope(kind, read(x + i, n - i), a, b), n - i);
}

static void act_grad(const oct_act *act, const float *x, const float *dy, float *dx, int64_t n)
{
#define ROW(kind) act_grad_row(kind, act, x, dy, dx, n)
    FOR_ACT(act->kind, ROW)
#undef ROW
}

static void max_taps(const float *x, const int64_t *at, int32_t n_taps, int32_t *index,
                     int64_t lanes)
{
    for (int64_t i = 0; i < lanes; i += VW) {
        const int64_t left = lanes - i;
        vf best = read(x + at[0] + i, left);
        vi found = {0};

        for (int32_t k = 1; k < n_taps; k++) {
            const vf v = read(x + at[k] + i, left);
            const vi more = (v > best) | ((v != v) & (best == best));

            best = pick(more, v, best);
            found = (found & ~more) | (more & k);
        }
        memcpy(index + i, &found, (size_t)OCT_MIN(left, VW) * sizeof(*index));
    }
}

/* --- fake quantization --- */

typedef struct fake_slopes {
    vf dx, slope, outside;
} fake_slopes;

/* Codes are whole numbers far below 2^22 where they are in range; beyond, only the side counts. */
INLINE fake_slopes fake_slope(vf x, vf dy, vf scale, vf low, vf high, vf rounding)
{
    const vf big = splat(4194304.0f), t = vmin(vmax(x / scale, -big), big), r = vround(t);
    const vi below = r<low, above = r> high;
    const vf end = pick(above, high, low);
    const vi out = below | above;
    const vf zero = {0};

    return (fake_slopes){pick(out, zero, dy), dy * pick(out, end, (r - t) * rounding),
                         pick(out, dy, zero)};
}

static void fake_grad(const float *x, const float *dy, float *dx, int64_t n, float scale, float low,
                      float high, float rounding, float *sums)
{
    const vf s = splat(scale), lo = splat(low), hi = splat(high), in = splat(rounding);
    vf slope = {0}, outside = {0};

    for (int64_t i = 0; i < n; i += VW) {
        const fake_slopes f = fake_slope(read(x + i, n - i), read(dy + i, n - i), s, lo, hi, in);

        slope += f.slope;
        outside += f.outside;
        write(dx + i, f.dx, n - i);
    }
    for (int k = 0; k < VW; k++) {
        sums[0] += slope[k];
        sums[1] += outside[k];
    }
}

static void fake_grad_lanes(const float *x, const float *dy, float *dx, int64_t n,
                            const float *scale, const float *low, const float *high, float rounding,
                            float *slope, float *outside)
{
    const vf in = splat(rounding);

    for (int64_t i = 0; i < n; i += VW) {
        const int64_t left = n - i;
        const fake_slopes f =
            fake_slope(read(x + i, left), read(dy + i, left), read(scale + i, left),
                       read(low + i, left), read(high + i, left), in);

        write(slope + i, read(slope + i, left) + f.slope, left);
        write(outside + i, read(outside + i, left) + f.outside, left);
        write(dx + i, f.dx, left);
    }
}

const oct_train_simd OCT_SIMD_TRAIN = {
    .outer = outer,
    .dot = dot,
    .conv_double = conv_double,
    .sums = sums,
    .moments = moments,
    .norm = norm,
    .norm_sums = norm_sums,
    .norm_grad = norm_grad,
    .act_grad = act_grad,
    .max_taps = max_taps,
    .fake_grad = fake_grad,
    .fake_grad_lanes = fake_grad_lanes,
};
