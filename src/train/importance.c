/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients that tell which channels matter: means of their absolute values over some batches. */
#include <math.h>

#include "train/train.h"

enum { RANK_BATCHES = 16 };

static void add(const oct_train *t, float *sum)
{
    const oct_params *p = oct_train_net_params(t->net);

    for (int32_t i = 0; i < p->n; i++) {
        const float *g = oct_train_net_grad(t->net, i);
        float *s = sum + p->v[i].offset;

        for (int64_t k = 0; k < p->v[i].len; k++)
            s[k] += fabsf(g[k]);
    }
}

/* Weights and statistics do not change. */
static oct_status run_batches(oct_train *t, int64_t n_batches, float *sum)
{
    int64_t n = 0;
    float *images = oct_train_net_images(t->net, &n), *labels = oct_train_net_labels(t->net, &n);

    OCT_TRY(oct_batches_seek(t->batches, t->epoch, 0));
    oct_train_net_set_epoch(t->net, t->epoch);
    for (int64_t i = 0; i < n_batches; i++) {
        OCT_TRY(oct_progress(t->ctx, "gradients of channels", i, n_batches));
        OCT_TRY(oct_batches_next(t->batches, images, labels, NULL));
        OCT_TRY(oct_train_net_step(t->net));
        add(t, sum);
    }
    for (int64_t i = 0; i < oct_train_net_params(t->net)->len; i++)
        sum[i] /= (float)n_batches;
    return OCT_OK;
}

oct_status oct_train_rank_gradients(oct_train *t, int64_t n_batches)
{
    const int64_t n = OCT_MIN(n_batches > 0 ? n_batches : RANK_BATCHES, t->n_batches);

    oct_free(t->ctx, t->ranking);
    t->ranking = oct_params_buffer(oct_train_net_params(t->net));
    if (!t->ranking) return OCT_ERR_MEMORY;
    return run_batches(t, OCT_MAX(n, 1), t->ranking);
}

oct_status oct_train_measure_gradients(oct_train *t, int32_t n_pictures)
{
    OCT_ENTER(t->ctx);

    return oct_train_rank_gradients(t, (n_pictures + t->s.batch - 1) / t->s.batch);
}

oct_status oct_train_gradient(void *train, const char *weight, const float **gradient, int64_t *n)
{
    OCT_ENTER(((const oct_train *)train)->ctx);
    const oct_train *t = train;
    const oct_params *p = oct_train_net_params(t->net);
    const int32_t i = t->ranking ? oct_params_find(p, weight) : -1;

    *gradient = i >= 0 ? t->ranking + p->v[i].offset : NULL;
    *n = i >= 0 ? p->v[i].len : 0;
    return OCT_OK;
}
