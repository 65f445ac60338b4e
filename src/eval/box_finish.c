/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From matched detections to the metrics.
 *
 * Sums are taken in numpy's order (pairwise), so that the results agree with pycocotools to the
 * last bits. Categories without labels do not take part.
 */
#include "eval/box_eval.h"

#include <float.h>
#include <string.h>

enum {
    T = OCT_BOX_THRESHOLDS,
    R = OCT_BOX_RECALLS,
    N_CURVE = T * R,
    AT_50 = 0, /* threshold 0.5 */
    AT_75 = 5,
};

void oct_box_recalls(double out[OCT_BOX_RECALLS])
{
    const double step = 1.0 / (R - 1);

    for (int r = 0; r < R; r++)
        out[r] = r * step;
    out[R - 1] = 1.0;
}

/* How many labels of one category count. */
typedef struct tally {
    int64_t in_area[OCT_BOX_AREAS];
    int64_t voc;
    size_t first, end; /* its detections in `order` */
} tally;

/* State of finishing. Categories are in the order of their ids. */
typedef struct summary {
    oct_box_eval *e;
    bool all;          /* pictures that were not seen take part */
    int32_t *place;    /* of a category in that order */
    tally *tallies;    /* by place */
    oct_ranked *order; /* by place, then by falling score */
    size_t n_order;
    int64_t most;      /* labels of one category */
    double *precision; /* [T][R][categories with labels] of one area range */
    double *recall;    /* [T][categories with labels] */
    double *gains;     /* [T][most]: precision at each right detection */
    double recalls[R];
} summary;

static void summary_free(summary *s)
{
    oct_ctx *ctx = s->e->ctx;

    oct_free(ctx, s->place);
    oct_free(ctx, s->tallies);
    oct_free(ctx, s->order);
    oct_free(ctx, s->precision);
    oct_free(ctx, s->recall);
    oct_free(ctx, s->gains);
}

static bool takes_part(const summary *s, int64_t i)
{
    const oct_box_image *im = &s->e->images[i];

    return !im->left_out && (im->seen || s->all);
}

/* --- sums --- */

/* Pairwise: halves are summed separately, down to blocks of 128 that are summed in eight lanes. */
static double pairwise_sum(const double *v, size_t n)
{
    double lane[8], sum = 0;
    size_t i, half;

    if (n < 8) {
        for (i = 0; i < n; i++)
            sum += v[i];
        return sum;
    }
    if (n > 128) {
        half = n / 2 / 8 * 8;
        return pairwise_sum(v, half) + pairwise_sum(v + half, n - half);
    }
    memcpy(lane, v, sizeof(lane));
    for (i = 8; i < n / 8 * 8; i += 8)
        for (size_t k = 0; k < 8; k++)
            lane[k] += v[i + k];
    sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    for (; i < n; i++)
        sum += v[i];
    return sum;
}

static double mean(const double *v, size_t n)
{
    return n ? pairwise_sum(v, n) / (double)n : -1;
}

/* --- collecting --- */

static void count_labels(summary *s)
{
    for (int64_t i = 0; i < s->e->n_images; i++) {
        int32_t n = 0;
        const oct_label *l = takes_part(s, i) ? oct_dataset_labels(s->e->truth, i, &n) : NULL;

        for (int32_t k = 0; k < n; k++) {
            tally *c = &s->tallies[s->place[l[k].category]];

            if (l[k].is_crowd) continue;
            c->voc++;
            for (int a = 0; a < OCT_BOX_AREAS; a++)
                c->in_area[a] += oct_box_in_area(a, l[k].area);
        }
    }
    for (int32_t k = 0; k < s->e->n_categories; k++)
        s->most = OCT_MAX(s->most, s->tallies[k].voc);
}

/* Counts the detections of each category, or moves them to their positions. */
static void walk_hits(summary *s, bool put)
{
    const oct_box_eval *e = s->e;

    for (int64_t i = 0; i < e->n_images; i++) {
        const oct_box_image *im = &e->images[e->image_ids[i].index];

        if (!takes_part(s, e->image_ids[i].index)) continue;
        for (size_t k = im->first; k < im->first + im->n; k++) {
            tally *c = &s->tallies[s->place[e->hits[k].category]];

            if (put) s->order[c->end] = (oct_ranked){e->hits[k].score, 0, (uint32_t)k};
            c->end++;
        }
    }
}

/* Detections by category; in it by falling score, equal ones by the id of their picture. */
static oct_status rank_hits(summary *s)
{
    oct_ctx *ctx = s->e->ctx;
    size_t n_most = 0;
    oct_ranked *work;

    if (s->e->n_hits > UINT32_MAX)
        return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "more than 4,294,967,295 detections");
    walk_hits(s, false);
    for (int32_t k = 0; k < s->e->n_categories; k++) {
        const size_t n = s->tallies[k].end;

        s->tallies[k].first = s->tallies[k].end = s->n_order;
        s->n_order += n;
        n_most = OCT_MAX(n_most, n);
    }
    s->order = oct_alloc(ctx, s->n_order * sizeof(*s->order));
    work = oct_alloc(ctx, n_most * sizeof(*work));
    if (s->order && work) {
        walk_hits(s, true);
        for (int32_t k = 0; k < s->e->n_categories; k++)
            oct_rank(s->order + s->tallies[k].first, work, s->tallies[k].end - s->tallies[k].first);
    }
    oct_free(ctx, work);
    return s->order && work ? OCT_OK : OCT_ERR_MEMORY;
}

/* --- one category in one area range --- */

/*
 * The precision at each recall point is the best precision from there on. Precision rises only at
 * right detections, so only these are needed. n_right gets their number for each threshold.
 */
static void find_gains(const summary *s, const tally *c, int a, int64_t n_right[T])
{
    const size_t pitch = (size_t)s->most;
    int64_t n_wrong[T] = {0}, n_wrong_everywhere = 0;

    memset(n_right, 0, T * sizeof(*n_right));
    for (size_t k = c->first; k < c->end; k++) {
        const oct_box_hit *h = &s->e->hits[s->order[k].index];

        if (h->right[a] == 0 && (h->wrong[a] == 0 || h->wrong[a] == (1u << T) - 1)) {
            n_wrong_everywhere += h->wrong[a] != 0; /* by far the most frequent */
            continue;
        }
        for (int t = 0; t < T; t++) {
            n_wrong[t] += (h->wrong[a] >> t) & 1;
            if ((h->right[a] >> t) & 1) {
                const double right = (double)++n_right[t];
                const double wrong = (double)(n_wrong[t] + n_wrong_everywhere);

                s->gains[(size_t)t * pitch + (size_t)n_right[t] - 1] =
                    right / (wrong + right + DBL_EPSILON);
            }
        }
    }
}

/* Every element becomes the maximum from there on. */
static void make_envelope(double *v, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--)
        if (v[i] > v[i - 1]) v[i - 1] = v[i];
}

/* Fills column `col` of n_col in precision and recall. */
static void fill_column(summary *s, const tally *c, int a, size_t col, size_t n_col)
{
    const double n_labels = (double)c->in_area[a];
    int64_t n_right[T];

    find_gains(s, c, a, n_right);
    for (int t = 0; t < T; t++) {
        double *gains = s->gains + (size_t)t * (size_t)s->most;
        double *out = s->precision + (size_t)t * R * n_col + col;
        int64_t k = 1;

        make_envelope(gains, n_right[t]);
        for (int r = 0; r < R; r++) {
            while (k <= n_right[t] && (double)k / n_labels < s->recalls[r])
                k++;
            out[(size_t)r * n_col] = k <= n_right[t] ? gains[k - 1] : 0;
        }
        s->recall[(size_t)t * n_col + col] = (double)n_right[t] / n_labels;
    }
}

/* --- all categories --- */

static size_t n_columns(const summary *s, int a)
{
    size_t n = 0;

    for (int32_t k = 0; k < s->e->n_categories; k++)
        n += s->tallies[k].in_area[a] > 0;
    return n;
}

/* Mean precision and recall in one area range; precision and recall stay filled. */
static void sum_area(summary *s, int a, double *ap, double *ar)
{
    const size_t n_col = n_columns(s, a);
    size_t col = 0;

    for (int32_t k = 0; k < s->e->n_categories; k++)
        if (s->tallies[k].in_area[a] > 0) fill_column(s, &s->tallies[k], a, col++, n_col);
    *ap = mean(s->precision, N_CURVE * n_col);
    *ar = mean(s->recall, T * n_col);
}

/* Recall if only the best `max_found` of each picture and category count. */
static double sum_recall(summary *s, int max_found)
{
    const size_t n_col = n_columns(s, 0);
    size_t col = 0;

    for (int32_t k = 0; k < s->e->n_categories; k++) {
        const tally *c = &s->tallies[k];
        int64_t n_right[T] = {0};

        if (c->in_area[0] == 0) continue;
        for (size_t i = c->first; i < c->end; i++) {
            const oct_box_hit *h = &s->e->hits[s->order[i].index];

            for (int t = 0; t < T && h->rank < max_found; t++)
                n_right[t] += (h->right[0] >> t) & 1;
        }
        for (int t = 0; t < T; t++)
            s->recall[(size_t)t * n_col + col] = (double)n_right[t] / (double)c->in_area[0];
        col++;
    }
    return mean(s->recall, T * n_col);
}

/* One curve from the curves of all thresholds. */
static void keep_mean(const double *column, double *out)
{
    for (int r = 0; r < R; r++) {
        out[r] = 0;
        for (int t = 0; t < T; t++)
            out[r] += column[t * R + r] / T;
    }
}

/* The mean curve of the categories with labels, stored after theirs. */
static void keep_means(const oct_box_eval *e, double *curves)
{
    double *out = curves + (size_t)e->n_categories * R;
    double n = 0;

    memset(out, 0, R * sizeof(*out));
    for (int32_t c = 0; c < e->n_categories; c++) {
        if (e->ap[c] < 0) continue;
        n++;
        for (int r = 0; r < R; r++)
            out[r] += curves[(size_t)c * R + (size_t)r];
    }
    for (int r = 0; r < R && n > 0; r++)
        out[r] /= n;
}

/* From the precision of all areas to the figures of each category. */
static void keep_categories(summary *s)
{
    const size_t n_col = n_columns(s, 0);
    oct_box_eval *e = s->e;
    double column[N_CURVE];
    size_t col = 0;

    for (int32_t k = 0; k < e->n_categories; k++) {
        const int64_t category = e->category_ids[k].index;

        e->ap[category] = e->ap50[category] = -1;
        e->n_labels[category] = 0;
        if (s->tallies[k].in_area[0] == 0) continue;
        for (size_t i = 0; i < N_CURVE; i++)
            column[i] = s->precision[i * n_col + col];
        col++;
        e->ap[category] = mean(column, N_CURVE);
        e->ap50[category] = mean(column + AT_50 * R, R);
        e->n_labels[category] = s->tallies[k].in_area[0];
        memcpy(e->curves + (size_t)category * R, column + AT_50 * R, R * sizeof(*column));
        keep_mean(column, e->means + (size_t)category * R);
    }
    keep_means(e, e->curves);
    keep_means(e, e->means);
}

/* Mean over the categories of the area under the envelope; each label is one step of recall. */
static double sum_voc(summary *s)
{
    double sum = 0;
    int64_t n = 0;

    for (int32_t k = 0; k < s->e->n_categories; k++) {
        const tally *c = &s->tallies[k];
        int64_t n_right = 0, n_wrong = 0;

        if (c->voc == 0) continue;
        for (size_t i = c->first; i < c->end; i++) {
            const oct_box_hit *h = &s->e->hits[s->order[i].index];

            n_wrong += h->voc == OCT_VOC_WRONG;
            if (h->voc != OCT_VOC_RIGHT) continue;
            n_right++;
            s->gains[n_right - 1] = (double)n_right / (double)(n_right + n_wrong);
        }
        make_envelope(s->gains, n_right);
        sum += pairwise_sum(s->gains, (size_t)n_right) / (double)c->voc;
        n++;
    }
    return n ? sum / (double)n : -1;
}

/* Frees partial results with the accumulator. */
static oct_status alloc_results(oct_box_eval *e)
{
    const size_t n = (size_t)e->n_categories;

    if (!e->n_labels) e->n_labels = oct_calloc(e->ctx, n, sizeof(*e->n_labels));
    if (!e->curves) e->curves = oct_calloc(e->ctx, n + 1, R * sizeof(*e->curves));
    if (!e->means) e->means = oct_calloc(e->ctx, n + 1, R * sizeof(*e->means));
    if (!e->ap50) e->ap50 = oct_calloc(e->ctx, n, sizeof(*e->ap50));
    if (!e->n_labels || !e->curves || !e->means || !e->ap50) return OCT_ERR_MEMORY;
    e->ap = oct_calloc(e->ctx, n, sizeof(*e->ap)); /* set last: there are results if it is set */
    return e->ap ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status summary_init(summary *s, oct_box_eval *e, bool all)
{
    const size_t n = (size_t)e->n_categories;

    *s = (summary){.e = e, .all = all};
    oct_box_recalls(s->recalls);
    if (!e->ap) OCT_TRY(alloc_results(e));
    s->place = oct_calloc(e->ctx, n, sizeof(*s->place));
    s->tallies = oct_calloc(e->ctx, n, sizeof(*s->tallies));
    if (!s->place || !s->tallies) return OCT_ERR_MEMORY;
    for (int32_t k = 0; k < e->n_categories; k++)
        s->place[e->category_ids[k].index] = k;
    count_labels(s);
    OCT_TRY(rank_hits(s));
    /* A category that counts in an area range counts in the first. */
    s->precision = oct_calloc(e->ctx, n_columns(s, 0), N_CURVE * sizeof(double));
    s->recall = oct_calloc(e->ctx, n_columns(s, 0), T * sizeof(double));
    s->gains = oct_calloc(e->ctx, (size_t)s->most, T * sizeof(double));
    return s->precision && s->recall && s->gains ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_box_eval_finish(oct_box_eval *e, int32_t all, oct_box_metrics *out)
{
    OCT_ENTER(e->ctx);
    oct_box_metrics m;
    summary s;
    const oct_status st = summary_init(&s, e, all != 0);

    if (!st) {
        const size_t n_slice = R * n_columns(&s, 0);

        for (size_t i = 0; i < OCT_COUNT(m.reserved); i++)
            m.reserved[i] = -1;
        sum_area(&s, 0, &m.ap, &m.ar100);
        m.ap50 = mean(s.precision + AT_50 * n_slice, n_slice);
        m.ap75 = mean(s.precision + AT_75 * n_slice, n_slice);
        keep_categories(&s);
        sum_area(&s, 1, &m.ap_small, &m.ar_small);
        sum_area(&s, 2, &m.ap_medium, &m.ar_medium);
        sum_area(&s, 3, &m.ap_large, &m.ar_large);
        m.ar1 = sum_recall(&s, 1);
        m.ar10 = sum_recall(&s, 10);
        m.voc_map50 = sum_voc(&s);
        *out = m;
    }
    summary_free(&s);
    return st;
}
