/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much AP depends on which pictures happened to be scored: the bootstrap over pictures.
 *
 * A resample draws as many pictures as there are, with replacement, so a picture counts 0, 1, 2 ..
 * times. Detections are ranked once; a resample only weights them. Copies of a right detection are
 * adjacent and precision rises with each, so the envelope is that of the last copy: the weighted AP
 * equals that of a set with the copies in it (except for detections of one picture that tie in
 * score, whose copies would alternate).
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "eval/box_eval.h"

enum {
    T = OCT_BOX_THRESHOLDS,
    R = OCT_BOX_RECALLS,
    MAX_RESAMPLES = 100000,
    USUAL_RESAMPLES = 200,
};

#define HALF_95 1.96 /* deviations of a normal distribution that hold 95 % on both sides */

/* A detection: what it is at each threshold, and whose picture. */
typedef struct record {
    uint16_t right, wrong;
    uint32_t image;
} record;

/* A label that counts. */
typedef struct counted {
    uint32_t image;
    int32_t category;
} counted;

/* A step of recall at one threshold. */
typedef struct gain {
    double n_right, precision;
} gain;

/* One accumulator, prepared for weighting. */
struct oct_box_weighing {
    const oct_box_eval *e;
    record *records; /* by category, then by falling score */
    size_t *first;   /* of each category; one more than there are */
    counted *labels;
    size_t n_labels;
    int64_t *n_in; /* labels of each category, weighed */
    gain *gains;   /* [T][most right ones of a category] */
    size_t pitch;  /* of gains */
    double recalls[R];
};

void oct_box_weighing_free(oct_box_weighing *w)
{
    oct_ctx *ctx;

    if (!w) return;
    ctx = w->e->ctx;
    oct_free(ctx, w->records);
    oct_free(ctx, w->first);
    oct_free(ctx, w->labels);
    oct_free(ctx, w->n_in);
    oct_free(ctx, w->gains);
    oct_free(ctx, w);
}

/* --- collecting --- */

static oct_status rank_records(oct_box_weighing *w)
{
    const oct_box_eval *e = w->e;
    oct_ranked *order = oct_calloc(e->ctx, e->n_hits + 1, sizeof(*order));
    oct_ranked *work = oct_calloc(e->ctx, e->n_hits + 1, sizeof(*work));
    uint32_t *image = oct_calloc(e->ctx, e->n_hits + 1, sizeof(*image));
    const bool has_memory = order && work && image;
    size_t n = 0;

    for (int64_t i = 0; has_memory && i < e->n_images; i++) {
        const int64_t index = e->image_ids[i].index;
        const oct_box_image *im = &e->images[index];

        for (size_t k = im->first; im->seen && !im->left_out && k < im->first + im->n; k++) {
            order[n++] = (oct_ranked){e->hits[k].score, e->hits[k].category, (uint32_t)k};
            image[k] = (uint32_t)index;
        }
    }
    if (has_memory) oct_rank(order, work, n);
    for (size_t k = 0; has_memory && k < n; k++) {
        const oct_box_hit *h = &e->hits[order[k].index];

        w->records[k] = (record){h->right[0], h->wrong[0], image[order[k].index]};
        w->first[h->category + 1] = k + 1;
    }
    for (int32_t c = 0; c < e->n_categories; c++)
        w->first[c + 1] = OCT_MAX(w->first[c], w->first[c + 1]);
    oct_free(e->ctx, order);
    oct_free(e->ctx, work);
    oct_free(e->ctx, image);
    return has_memory ? OCT_OK : OCT_ERR_MEMORY;
}

static oct_status gather_labels(oct_box_weighing *w)
{
    const oct_box_eval *e = w->e;
    size_t n = 0;
    int32_t n_of = 0;

    for (int64_t i = 0; i < e->n_images; i++) {
        (void)oct_dataset_labels(e->truth, i, &n_of);
        n += (size_t)n_of;
    }
    if (!(w->labels = oct_calloc(e->ctx, n + 1, sizeof(*w->labels)))) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < e->n_images; i++) {
        const oct_label *l = oct_dataset_labels(e->truth, i, &n_of);

        for (int32_t k = 0; k < n_of; k++)
            if (!l[k].is_crowd && oct_box_in_area(0, l[k].area))
                w->labels[w->n_labels++] = (counted){(uint32_t)i, l[k].category};
    }
    return OCT_OK;
}

/* The most detections of one category that are right somewhere. */
static size_t most_right(const oct_box_weighing *w)
{
    size_t most = 0;

    for (int32_t c = 0; c < w->e->n_categories; c++) {
        size_t n = 0;

        for (size_t k = w->first[c]; k < w->first[c + 1]; k++)
            n += w->records[k].right != 0;
        most = OCT_MAX(most, n);
    }
    return most;
}

oct_status oct_box_weighing_new(const oct_box_eval *e, oct_box_weighing **out)
{
    oct_box_weighing *w;
    oct_status st = OCT_ERR_MEMORY;

    if (e->n_hits > UINT32_MAX || e->n_images > UINT32_MAX)
        return oct_fail(e->ctx, OCT_ERR_UNSUPPORTED, "more than 4,294,967,295 detections");
    if (!(w = oct_calloc(e->ctx, 1, sizeof(*w)))) return OCT_ERR_MEMORY;
    w->e = e;
    oct_box_recalls(w->recalls);
    w->records = oct_calloc(e->ctx, e->n_hits + 1, sizeof(*w->records));
    w->first = oct_calloc(e->ctx, (size_t)e->n_categories + 1, sizeof(*w->first));
    w->n_in = oct_calloc(e->ctx, (size_t)e->n_categories + 1, sizeof(*w->n_in));
    if (!w->records || !w->first || !w->n_in) goto failed;
    if ((st = rank_records(w))) goto failed;
    if ((st = gather_labels(w))) goto failed;
    w->pitch = most_right(w) + 1;
    w->gains = oct_calloc(e->ctx, w->pitch, T * sizeof(*w->gains));
    if (!w->gains) {
        st = OCT_ERR_MEMORY;
        goto failed;
    }
    *out = w;
    return OCT_OK;
failed:
    oct_box_weighing_free(w);
    return st;
}

/* --- one resample --- */

/* Points where recall rises, with the precision there; n gets their number for each threshold. */
static void find_gains(oct_box_weighing *w, int32_t category, const uint32_t *weights, size_t n[T])
{
    double n_right[T] = {0}, n_wrong[T] = {0}, n_wrong_everywhere = 0;

    memset(n, 0, T * sizeof(*n));
    for (size_t k = w->first[category]; k < w->first[category + 1]; k++) {
        const record *r = &w->records[k];
        const double weight = (double)weights[r->image];

        if (weight == 0) continue;
        if (r->right == 0 && r->wrong == (1u << T) - 1) {
            n_wrong_everywhere += weight; /* by far the most frequent */
            continue;
        }
        for (int t = 0; t < T; t++) {
            if ((r->wrong >> t) & 1) n_wrong[t] += weight;
            if (!((r->right >> t) & 1)) continue;
            n_right[t] += weight;
            w->gains[(size_t)t * w->pitch + n[t]++] =
                (gain){n_right[t],
                       n_right[t] / (n_right[t] + n_wrong[t] + n_wrong_everywhere + DBL_EPSILON)};
        }
    }
}

static double category_ap(oct_box_weighing *w, int32_t category, const uint32_t *weights)
{
    const double n_labels = (double)w->n_in[category];
    double sum = 0;
    size_t n[T];

    find_gains(w, category, weights, n);
    for (int t = 0; t < T; t++) {
        gain *g = w->gains + (size_t)t * w->pitch;
        size_t k = 0;

        for (size_t i = n[t]; i-- > 1;)
            if (g[i].precision > g[i - 1].precision) g[i - 1].precision = g[i].precision;
        for (int r = 0; r < R; r++) {
            while (k < n[t] && g[k].n_right / n_labels < w->recalls[r])
                k++;
            if (k == n[t]) break;
            sum += g[k].precision;
        }
    }
    return sum / (T * R);
}

double oct_box_weighing_ap(oct_box_weighing *w, const uint32_t *weights)
{
    const int32_t n_categories = w->e->n_categories;
    double sum = 0;
    int32_t n = 0;

    memset(w->n_in, 0, (size_t)n_categories * sizeof(*w->n_in));
    for (size_t i = 0; i < w->n_labels; i++)
        w->n_in[w->labels[i].category] += weights[w->labels[i].image];
    for (int32_t c = 0; c < n_categories; c++) {
        if (!w->n_in[c]) continue;
        sum += category_ap(w, c, weights);
        n++;
    }
    return n ? sum / n : -1;
}

/* --- many resamples --- */

/* Accumulators of a standard deviation, of numbers near `origin`. */
typedef struct spread {
    double origin, sum, squares;
    int64_t n;
} spread;

static void spread_see(spread *s, double v)
{
    if (s->n++ == 0) s->origin = v;
    s->sum += v - s->origin;
    s->squares += (v - s->origin) * (v - s->origin);
}

static double spread_half(const spread *s)
{
    const double n = (double)s->n,
                 power = n > 1 ? (s->squares - s->sum * s->sum / n) / (n - 1) : -1;

    return n < 2 ? -1 : HALF_95 * sqrt(OCT_MAX(power, 0.0));
}

static bool takes_part(const oct_box_eval *e, int64_t i, bool all)
{
    return !e->images[i].left_out && (e->images[i].seen || all);
}

/* What the resamples work with. */
typedef struct drawing {
    oct_box_weighing *side[2]; /* the second may be NULL */
    int64_t *images;           /* that take part */
    uint32_t *weights;         /* of all pictures */
    int64_t n;
} drawing;

static oct_status drawing_init(drawing *d, const oct_box_eval *e, const oct_box_eval *other,
                               bool all)
{
    d->images = oct_calloc(e->ctx, (size_t)e->n_images + 1, sizeof(*d->images));
    d->weights = oct_calloc(e->ctx, (size_t)e->n_images + 1, sizeof(*d->weights));
    if (!d->images || !d->weights) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < e->n_images; i++)
        if (takes_part(e, i, all) && (!other || takes_part(other, i, all))) d->images[d->n++] = i;
    OCT_TRY(oct_box_weighing_new(e, &d->side[0]));
    return other ? oct_box_weighing_new(other, &d->side[1]) : OCT_OK;
}

static void draw(drawing *d, oct_rng *rng, int64_t n_images, double ap[2])
{
    memset(d->weights, 0, (size_t)n_images * sizeof(*d->weights));
    for (int64_t k = 0; k < d->n; k++)
        d->weights[d->images[oct_rng_below(rng, (uint64_t)d->n)]]++;
    ap[0] = oct_box_weighing_ap(d->side[0], d->weights);
    ap[1] = d->side[1] ? oct_box_weighing_ap(d->side[1], d->weights) : -1;
}

static void draw_all(drawing *d, int64_t n_images, int32_t resamples, uint64_t seed,
                     oct_box_noise *r)
{
    spread first = {0}, second = {0}, difference = {0};
    oct_rng rng;

    oct_rng_init(&rng, seed);
    for (int32_t i = 0; d->n > 1 && i < resamples; i++) {
        double ap[2];

        draw(d, &rng, n_images, ap);
        if (ap[0] < 0) continue; /* no picture with labels was drawn */
        spread_see(&first, ap[0]);
        if (ap[1] < 0) continue;
        spread_see(&second, ap[1]);
        spread_see(&difference, ap[1] - ap[0]);
    }
    r->ap = spread_half(&first);
    r->other_ap = spread_half(&second);
    r->difference = spread_half(&difference);
}

oct_status oct_box_eval_noise(const oct_box_eval *e, const oct_box_eval *other, int32_t all,
                              int32_t resamples, uint64_t seed, oct_box_noise *out)
{
    OCT_ENTER(e->ctx);
    oct_box_noise r = {.struct_size = out->struct_size,
                       .resamples = resamples > 0 ? resamples : USUAL_RESAMPLES};
    drawing d = {.n = 0};
    oct_status st;

    if (resamples > MAX_RESAMPLES)
        return oct_fail(e->ctx, OCT_ERR_ARG, "%d resamples are too many; at most %d",
                        (int)resamples, MAX_RESAMPLES);
    if (other && (e->n_images != other->n_images || e->n_categories != other->n_categories))
        return oct_fail(e->ctx, OCT_ERR_ARG, "metrics of different datasets cannot be compared");
    st = drawing_init(&d, e, other, all != 0);
    if (!st) {
        r.images = d.n;
        draw_all(&d, e->n_images, r.resamples, seed, &r);
        memcpy(out, &r, OCT_MIN(out->struct_size, sizeof(r)));
    }
    oct_box_weighing_free(d.side[0]);
    oct_box_weighing_free(d.side[1]);
    oct_free(e->ctx, d.images);
    oct_free(e->ctx, d.weights);
    return st;
}
