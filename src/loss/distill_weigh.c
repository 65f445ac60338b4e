/* SPDX-License-Identifier: Apache-2.0 */
/* What places weigh in the distillation of detectors: see distill.h. */
#include "loss/distill.h"
#include "op/grad/rules.h"
#include "op/op.h"

/* Fewer are no feature map. */
enum { LEAST_PLACES = 16, SIDES = 4 };

typedef struct weigher {
    oct_builder *b;
    oct_distilled *v;
    int32_t n;
    oct_value **best; /* by value: its teacher's highest score of each place, [pictures, places];
                       * NULL: no scores */
    oct_value *share; /* 1 / N */
} weigher;

static int64_t places_of(const oct_distilled *v)
{
    const oct_type *t = &v->value->type;

    return t->dim[v->axis] > 0 ? oct_type_span(t, 1, t->rank) / t->dim[v->axis] : 0;
}

static bool has_scores(const oct_distilled *v)
{
    return v->kind == OCT_DISTILL_BCE && !v->is_inner && v->axis > 0 &&
           places_of(v) >= LEAST_PLACES;
}

static bool same_places(const oct_distilled *a, const oct_distilled *b)
{
    return places_of(a) == places_of(b) && a->value->type.dim[0] == b->value->type.dim[0];
}

static oct_value *times(const weigher *w, oct_value *x, oct_value *y)
{
    return x ? oct_emit(w->b, &oct_op_mul, x, y, NULL) : y;
}

static oct_value *best_of(const weigher *w, const oct_distilled *v)
{
    const int64_t rows[] = {v->value->type.dim[0], places_of(v)};
    oct_value *x = oct_grad_reduce(w->b, &oct_op_reduce_max, v->teacher, &v->axis, 1, true);

    x = oct_emit(w->b, &oct_op_sigmoid, x, NULL, NULL);
    return oct_emit(w->b, &oct_op_reshape, x, oct_ints(w->b, rows, 2), NULL);
}

/* The score of the places of v: the product, where several values have scores of them. */
static oct_value *score_of(const weigher *w, const oct_distilled *v)
{
    oct_value *s = NULL;

    for (int32_t i = 0; i < w->n; i++)
        if (w->best[i] && same_places(&w->v[i], v)) s = times(w, s, w->best[i]);
    return s;
}

/* Is v the first whose scores are of its places? */
static bool is_first(const weigher *w, int32_t v)
{
    for (int32_t i = 0; i < v; i++)
        if (w->best[i] && same_places(&w->v[i], &w->v[v])) return false;
    return true;
}

static oct_value *share_of(const weigher *w, oct_dtype dtype)
{
    oct_value *sum = NULL;

    for (int32_t i = 0; i < w->n; i++) {
        oct_value *s;

        if (!w->best[i] || !is_first(w, i)) continue;
        s = oct_grad_reduce(w->b, &oct_op_reduce_sum, score_of(w, &w->v[i]), (int64_t[]){0, 1}, 2,
                            false);
        sum = sum ? oct_emit(w->b, &oct_op_add, sum, s, NULL) : s;
    }
    sum = oct_emit(w->b, &oct_op_max, sum, oct_scalar_of(w->b, dtype, 1), NULL);
    return oct_emit(w->b, &oct_op_div, oct_scalar_of(w->b, dtype, 1), sum, NULL);
}

/* [pictures, places] as it broadcasts to v; `sides`: the dim of four is no place. */
static oct_value *spread(const weigher *w, oct_value *x, const oct_distilled *v, bool sides)
{
    oct_type t = v->value->type;

    t.dim[v->axis] = 1;
    for (int32_t d = 1; d < t.rank && sides; d++)
        if (t.dim[d] == SIDES && d != v->axis) {
            t.dim[d] = 1;
            break;
        }
    return oct_emit(w->b, &oct_op_reshape, x, oct_ints(w->b, t.dim, t.rank), NULL);
}

static bool has_sides(const oct_distilled *v)
{
    const oct_type *t = &v->value->type;

    for (int32_t d = 1; d < t->rank; d++)
        if (t->dim[d] == SIDES && d != v->axis) return true;
    return false;
}

/* Classes count where there is an object, if another value says that. */
static void weigh_scores(const weigher *w, oct_distilled *v)
{
    oct_value *gate = NULL;

    for (int32_t i = 0; i < w->n; i++) {
        const oct_distilled *k = &w->v[i];

        if (w->best[i] && same_places(k, v) && k->value->type.dim[k->axis] == 1 &&
            v->value->type.dim[v->axis] > 1)
            gate = times(w, gate, w->best[i]);
    }
    v->weight = gate ? spread(w, times(w, gate, w->share), v, false) : w->share;
}

static void weigh_boxes(const weigher *w, oct_distilled *v)
{
    const int64_t pictures = v->value->type.dim[0], places = places_of(v);

    for (int32_t i = 0; i < w->n; i++) {
        const bool sides = places == SIDES * places_of(&w->v[i]) && has_sides(v);
        double over = v->kind == OCT_DISTILL_MSE ? (double)v->value->type.dim[v->axis] : 1;
        oct_value *s;

        if (!w->best[i] || w->v[i].value->type.dim[0] != pictures) continue;
        if (!sides && places_of(&w->v[i]) != places) continue;
        over *= sides ? SIDES : 1;
        s = times(w, score_of(w, &w->v[i]), w->share);
        s = times(w, s, oct_scalar_of(w->b, v->value->type.dtype, 1 / over));
        v->weight = spread(w, s, v, sides);
        return;
    }
}

void oct_distill_weigh(oct_builder *b, oct_distilled *v, int32_t n)
{
    weigher w = {.b = b, .v = v, .n = n};
    const oct_distilled *any = NULL;

    w.best = oct_arena_array(b->g->arena, (size_t)n + 1, sizeof(*w.best));
    if (!w.best) b->status = OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n && !b->status; i++)
        if (has_scores(&v[i])) {
            w.best[i] = best_of(&w, &v[i]);
            any = &v[i];
        }
    if (!any || b->status) return;
    w.share = share_of(&w, any->value->type.dtype);
    for (int32_t i = 0; i < n && !b->status; i++) {
        if (v[i].is_inner || v[i].axis < 1 || v[i].value->type.rank < 2) continue;
        if (w.best[i])
            weigh_scores(&w, &v[i]);
        else if (v[i].kind != OCT_DISTILL_BCE)
            weigh_boxes(&w, &v[i]);
    }
}
