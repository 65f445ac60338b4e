/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to mend a layer, each on a copy of the qmap. */
#include "op/op.h"
#include "quant/correct/correct.h"
#include "quant/fallback/fallback.h"
#include "quant/heal/heal.h"
#include "quant/solve/solve.h"

#include <string.h>

#define CLIPPED 99.9 /* of all values */

/* --- float --- */

static oct_status cancel_shift(oct_qmap *m, const oct_node *n, oct_arena *a)
{
    const oct_qshift *s = oct_qmap_shift_of(m, n);
    float *back = s ? oct_arena_array(a, (size_t)s->n + 1, sizeof(*back)) : NULL;

    if (!s) return OCT_OK;
    if (!back) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < s->n; i++)
        back[i] = -s->shift[i];
    return oct_qmap_shift(m, n, back, s->n);
}

static oct_status keep_float(const oct_heal_job *j, oct_qmap *m, const oct_node *n, bool *done)
{
    *done = true;
    OCT_TRY(oct_fallback_keep_float(
        m, n, OCT_FLOAT_ERROR, "kept in float: it alone made most of the error at the outputs"));
    OCT_TRY(cancel_shift(m, n, m->arena)); /* it undid the error of rounded weights */
    return oct_fallback_drop_unread(m, j->target);
}

/* --- other scales of its input --- */

static bool corrects_fully(const oct_heal_job *j)
{
    return j->o->bias_correction && strcmp(j->o->bias_correction, "full") == 0;
}

/* Weights fold the scales of inputs in, and biases undo the errors of weights. */
static oct_status solve_rest(const oct_heal_job *j, oct_qmap *m)
{
    OCT_TRY(oct_ort_signs(m));
    OCT_TRY(oct_solve_weights(m, j->target, j->o));
    for (int32_t i = 0; i < m->n_shifts; i++)
        memset(m->shifts[i].shift, 0, (size_t)m->shifts[i].n * sizeof(float));
    if (j->o->bias_correction && strcmp(j->o->bias_correction, "none") == 0) return OCT_OK;
    return oct_correct_bias_fast(m, j->c);
}

/* Is this way one for the point? Changes what the solver reads. */
static bool prepare(oct_qpoint *p, oct_mend_kind kind)
{
    const bool has_channels = p->n > 1 && p->channel_share < 1.0f;

    if (kind == OCT_MEND_CHANNELS && !has_channels) return false;
    if (kind == OCT_MEND_CHANNELS) p->channel_share = 1;
    if (!p->spec.is_symmetric) p->spec.is_signed = false; /* as it was solved: ort_signs.c */
    return true;
}

static oct_status solve_inputs(const oct_heal_job *j, oct_qmap *m, const oct_node *n,
                               oct_mend_kind kind, bool *done)
{
    uint8_t *mark = oct_arena_alloc(m->arena, (size_t)m->n_points + 1);
    const char *by = kind == OCT_MEND_CHANNELS ? NULL : "percentile";
    const double percentile = kind == OCT_MEND_CLIPPED ? CLIPPED : 100;

    if (!mark) return OCT_ERR_MEMORY;
    OCT_TRY(oct_place_sources(m, n->in[0], mark));
    for (int32_t i = 0; i < m->n_points; i++) {
        bool is_solved;

        if (!mark[i] || !prepare(&m->points[i], kind)) continue;
        OCT_TRY(oct_solve_point_again(m, i, j->c, by, percentile, &is_solved));
        *done = *done || is_solved;
    }
    return *done ? solve_rest(j, m) : OCT_OK;
}

oct_status oct_heal_mend(const oct_heal_job *j, const oct_qmap *m, const oct_node *const *layers,
                         int32_t n, oct_mend_kind kind, oct_qmap **out)
{
    oct_qmap *copy = NULL;
    bool done = false;
    oct_status st = OCT_OK;

    *out = NULL;
    if (kind != OCT_MEND_FLOAT && corrects_fully(j)) return OCT_OK;
    OCT_TRY(oct_qmap_clone(m, &copy));
    for (int32_t i = 0; i < n && !st; i++)
        st = kind == OCT_MEND_FLOAT ? keep_float(j, copy, layers[i], &done)
                                    : solve_inputs(j, copy, layers[i], kind, &done);
    if (st || !done) {
        oct_qmap_free(copy);
        return st;
    }
    *out = copy;
    return OCT_OK;
}
