/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which detection is right: the matching of one picture.
 *
 * The rule, for one category, area range and overlap threshold: detections are taken by falling
 * score; each takes the free label it overlaps most, if that reaches the threshold. Labels that
 * count come before those that are ignored (crowds, or outside of the area range), and of equal
 * overlaps the later label wins. A crowd is never used up, and its overlap is measured against the
 * detection's area alone. A detection that took an ignored label is ignored itself, and so is one
 * that took none and lies outside of the area range.
 *
 * All ten thresholds go through at once, as the bits of a mask: labels are tried by falling
 * overlap, and each is taken at the thresholds that are still open, that it reaches, and at which
 * it is free.
 *
 * One thing is not as in pycocotools, which keeps the id of the label taken and reads 0 as none: a
 * label whose id is 0 can be found here.
 */
#include "eval/box_eval.h"

#define ALL_THRESHOLDS ((1u << OCT_BOX_THRESHOLDS) - 1)

void oct_box_thresholds(double out[OCT_BOX_THRESHOLDS])
{
    const double step = (0.95 - 0.5) / (OCT_BOX_THRESHOLDS - 1);

    for (int t = 0; t < OCT_BOX_THRESHOLDS; t++)
        out[t] = t * step + 0.5;
    out[OCT_BOX_THRESHOLDS - 1] = 0.95;
}

bool oct_box_in_area(int a, double area)
{
    static const double range[OCT_BOX_AREAS][2] = {
        {0, 1e10}, {0, 32 * 32}, {32 * 32, 96 * 96}, {96 * 96, 1e10}};

    return !(area < range[a][0] || area > range[a][1]);
}

/* The labels of one category in the current picture. */
typedef struct bucket {
    const oct_label *labels;  /* of the picture */
    const oct_ranked *member; /* index: which label */
    oct_box_truth *state;     /* as member */
    size_t n;
    oct_ranked *near, *work; /* n each: labels that overlap enough, index into member */
    double threshold[OCT_BOX_THRESHOLDS];
} bucket;

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/*
 * The overlaps that reach the lowest threshold, largest first, of equals the later label first.
 * *voc_best is the label with the largest plain overlap if that reaches 0.5, else -1.
 */
static size_t find_near(const bucket *b, const oct_box_found *d, int64_t *voc_best)
{
    const double area = d->width * d->height;
    double best = b->threshold[0];
    size_t n = 0;

    *voc_best = -1;
    for (size_t k = b->n; k-- > 0;) {
        const oct_label *l = &b->labels[b->member[k].index];
        const double w = smaller(d->width + d->x, l->width + l->x) - larger(d->x, l->x);
        const double h = smaller(d->height + d->y, l->height + l->y) - larger(d->y, l->y);
        double both, plain, overlap;

        if (w <= 0 || h <= 0) continue;
        both = w * h;
        plain = both / (area + l->width * l->height - both);
        overlap = l->is_crowd ? both / area : plain;
        if (overlap >= b->threshold[0]) b->near[n++] = (oct_ranked){overlap, 0, (uint32_t)k};
        if (plain >= best) { /* of equals the first label */
            best = plain;
            *voc_best = (int64_t)k;
        }
    }
    oct_rank(b->near, b->work, n);
    return n;
}

/* Matches labels at the thresholds `open`, those that are ignored in this area range or the
 * others; returns the thresholds at which one was matched. */
static unsigned take(const bucket *b, size_t n_near, int a, bool ignored, unsigned open)
{
    const unsigned before = open;

    for (size_t i = 0; i < n_near && open; i++) {
        const uint32_t k = b->near[i].index;
        oct_box_truth *s = &b->state[k];
        unsigned at = 0;

        if (((s->ignored >> a) & 1) != ignored) continue;
        for (int t = 0; t < OCT_BOX_THRESHOLDS && b->near[i].score >= b->threshold[t]; t++)
            at |= 1u << t;
        at &= open;
        if (!b->labels[b->member[k].index].is_crowd) at &= ~(unsigned)s->taken[a];
        s->taken[a] = (uint16_t)(s->taken[a] | at);
        open &= ~at;
    }
    return before & ~open;
}

static uint8_t match_voc(const bucket *b, int64_t best)
{
    if (best < 0) return OCT_VOC_WRONG;
    if (b->labels[b->member[best].index].is_crowd) return OCT_VOC_IGNORED;
    if (b->state[best].voc_taken) return OCT_VOC_WRONG;
    b->state[best].voc_taken = true;
    return OCT_VOC_RIGHT;
}

static void match(const bucket *b, const oct_box_found *d, oct_box_hit *hit)
{
    int64_t voc_best;
    const size_t n_near = find_near(b, d, &voc_best);

    for (int a = 0; a < OCT_BOX_AREAS; a++) {
        unsigned open = ALL_THRESHOLDS, right = 0;

        if (n_near) {
            right = take(b, n_near, a, false, open);
            open &= ~right;
            open &= ~take(b, n_near, a, true, open);
        }
        hit->right[a] = (uint16_t)right;
        hit->wrong[a] = (uint16_t)(oct_box_in_area(a, d->width * d->height) ? open : 0);
    }
    hit->voc = match_voc(b, voc_best);
}

static void init_states(oct_box_eval *e, const oct_label *labels, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const oct_label *l = &labels[e->labels[k].index];
        unsigned ignored = 0;

        for (int a = 0; a < OCT_BOX_AREAS; a++)
            if (l->is_crowd || !oct_box_in_area(a, l->area)) ignored |= 1u << a;
        e->states[k] = (oct_box_truth){.ignored = (uint8_t)ignored};
    }
}

/* One more than needed, so that none of the arrays is NULL. */
static oct_status make_room(oct_box_eval *e, size_t n_labels, size_t n)
{
    const size_t larger_n = OCT_MAX(n, n_labels) + 1;
    oct_ctx *ctx = e->ctx;
    size_t n_hits;

    if (n >= UINT32_MAX || !oct_add_size(e->n_hits, n + 1, &n_hits))
        return oct_fail(ctx, OCT_ERR_MEMORY, "out of memory: %zu detections", n);
    OCT_TRY(oct_grow(ctx, &e->hits, &e->hits_cap, n_hits, sizeof(*e->hits)));
    OCT_TRY(oct_grow(ctx, &e->rank, &e->rank_cap, larger_n, sizeof(*e->rank)));
    OCT_TRY(oct_grow(ctx, &e->work, &e->work_cap, larger_n, sizeof(*e->work)));
    /* The labels, and after them those near a detection. */
    OCT_TRY(oct_grow(ctx, &e->labels, &e->labels_cap, 2 * n_labels + 1, sizeof(*e->labels)));
    return oct_grow(ctx, &e->states, &e->states_cap, n_labels + 1, sizeof(*e->states));
}

oct_status oct_box_match(oct_box_eval *e, int64_t i, const oct_box_found *found, size_t n)
{
    int32_t n_labels = 0;
    const oct_label *labels = oct_dataset_labels(e->truth, i, &n_labels);
    const size_t end = (size_t)n_labels;
    size_t label = 0, first = 0;
    bucket b = {.labels = labels};

    OCT_TRY(make_room(e, end, n));
    for (size_t k = 0; k < end; k++)
        e->labels[k] = (oct_ranked){0, labels[k].category, (uint32_t)k};
    for (size_t k = 0; k < n; k++)
        e->rank[k] = (oct_ranked){found[k].score, found[k].category, (uint32_t)k};
    oct_rank(e->labels, e->work, end);
    oct_rank(e->rank, e->work, n);
    init_states(e, labels, end);
    oct_box_thresholds(b.threshold);
    b.near = e->labels + end;
    b.work = e->work;

    e->images[i] = (oct_box_image){.first = e->n_hits, .seen = true};
    for (size_t k = 0; k < n; k++) {
        const int32_t category = e->rank[k].group;
        oct_box_hit *hit = &e->hits[e->n_hits];

        if (k == 0 || category != e->rank[k - 1].group) {
            first = k;
            while (label < end && e->labels[label].group < category)
                label++;
            b.member = e->labels + label;
            b.state = e->states + label;
            b.n = 0;
            while (label < end && e->labels[label].group == category) {
                label++;
                b.n++;
            }
        }
        if (k - first >= OCT_BOX_MAX_FOUND) continue;
        *hit = (oct_box_hit){
            .score = e->rank[k].score, .category = category, .rank = (uint8_t)(k - first)};
        match(&b, &found[e->rank[k].index], hit);
        e->n_hits++;
    }
    e->images[i].n = (uint32_t)(e->n_hits - e->images[i].first);
    return OCT_OK;
}
