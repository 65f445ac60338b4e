/* SPDX-License-Identifier: Apache-2.0 */
/* Networks with two outputs for each feature map: scores, and distributions over distances. */
#include <stdio.h>

#include "detect/family.h"

enum { MIN_BINS = 8, MAX_BINS = 33 };

static int64_t last_dim(const oct_type *t)
{
    return t->dim[t->rank - 1];
}

/* The outputs [n, cells, *], or without a batch [cells, *], of one stride; their number. */
static int find_pair(const oct_net *net, int64_t cells, int32_t pair[2])
{
    int n = 0;

    for (int32_t i = 0; i < net->g->n_outputs; i++) {
        const oct_type *t = oct_net_out(net, i);

        if (t->rank != 3 && t->rank != 2) continue;
        if (t->dim[t->rank - 2] != cells || last_dim(t) < 1 || last_dim(t) > INT16_MAX) continue;
        if (n < 2) pair[n] = i;
        n++;
    }
    return n;
}

static bool may_be_distances(int64_t k)
{
    return k % 4 == 0 && k / 4 >= MIN_BINS && k / 4 <= MAX_BINS;
}

/*
 * Which of the two are the scores: the one with a Sigmoid in its tail; if that is not decisive, the
 * one that cannot be distances; else the first.
 */
static oct_status tell_apart(const oct_net *net, int32_t pair[2], bool *has_sigmoid)
{
    const int64_t a = last_dim(oct_net_out(net, pair[0])), b = last_dim(oct_net_out(net, pair[1]));
    bool sig_a, sig_b, swap;

    OCT_TRY(oct_net_tail(net, net->g->outputs[pair[0]], oct_node_is_sigmoid, &sig_a));
    OCT_TRY(oct_net_tail(net, net->g->outputs[pair[1]], oct_node_is_sigmoid, &sig_b));
    swap = sig_a != sig_b ? sig_b : may_be_distances(a) && !may_be_distances(b);
    if (swap) {
        const int32_t first = pair[0];

        pair[0] = pair[1];
        pair[1] = first;
    }
    *has_sigmoid = sig_a || sig_b;
    return OCT_OK;
}

oct_status oct_match_levels(const oct_net *net, oct_reading *r)
{
    const int32_t n = net->g->n_outputs / 2;

    r->levels.n = 0;
    if (net->g->n_outputs % 2 || n < 2 || n > OCT_MAX_LEVELS) return OCT_OK;
    for (int32_t l = 0; l < n; l++) {
        int32_t pair[2] = {-1, -1};
        int64_t classes, distances;
        bool has_sigmoid;

        if (find_pair(net, oct_net_cells(net, 8 << l), pair) != 2) return OCT_OK;
        OCT_TRY(tell_apart(net, pair, &has_sigmoid));
        classes = last_dim(oct_net_out(net, pair[0]));
        distances = last_dim(oct_net_out(net, pair[1]));
        if (!may_be_distances(distances)) return OCT_OK;
        if (l && (classes != r->n_classes || distances / 4 != r->bins)) return OCT_OK;
        r->n_classes = (int32_t)classes;
        r->bins = (int32_t)(distances / 4);
        r->is_logits = !has_sigmoid;
        r->level_scores[l] = pair[0];
        r->level_boxes[l] = pair[1];
        r->levels.stride[l] = 8 << l;
    }
    r->levels.n = n;
    (void)snprintf(r->why, sizeof(r->why),
                   "%d pairs of outputs, [n, cells, %d] scores and [n, cells, 4 * %d bins] "
                   "distances, for strides 8 to %d",
                   (int)n, (int)r->n_classes, (int)r->bins, (int)r->levels.stride[n - 1]);
    return OCT_OK;
}

/* Without a batch, a network takes one picture. */
static oct_status level_part(oct_decoding *d, int32_t i, oct_view *v)
{
    OCT_TRY(oct_decoding_whole(d, i, v));
    return v->rank == 2 && d->index == 0 ? OCT_OK : oct_decoding_view(d, i, 2, v);
}

oct_status oct_decode_levels(oct_decoding *d, float shift)
{
    const oct_reading *r = d->reading;
    oct_dfl_level level = {.shift = shift};

    for (int32_t l = 0; l < r->levels.n; l++) {
        const int32_t s = r->levels.stride[l];
        const int64_t n = (int64_t)((r->width + s - 1) / s) * ((r->height + s - 1) / s);

        OCT_TRY(level_part(d, r->level_scores[l], &level.scores));
        OCT_TRY(level_part(d, r->level_boxes[l], &level.distances));
        if (level.scores.dim[0] != n || level.scores.dim[1] != r->n_classes)
            return oct_decoding_misfit(d, r->level_scores[l]);
        if (level.distances.dim[0] != n || level.distances.dim[1] != 4 * (int64_t)r->bins)
            return oct_decoding_misfit(d, r->level_boxes[l]);
        level.stride = s;
        oct_decode_dfl(d, &level);
        level.first += n;
    }
    return OCT_OK;
}
