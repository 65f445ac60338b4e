/* SPDX-License-Identifier: Apache-2.0 */
/* Are two qmaps the same, bit for bit? Names are compared, so the graphs may be two copies. */
#ifndef OCT_TESTS_QMAP_EQUAL_H
#define OCT_TESTS_QMAP_EQUAL_H

#include <stdio.h>
#include <string.h>

#include "quant/qmap.h"

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_bytes(const void *a, const void *b, int64_t n, size_t size)
{
    return a == b || (a && b && memcmp(a, b, (size_t)n * size) == 0);
}

static bool same_spec(const oct_qspec *a, const oct_qspec *b)
{
    return a->bits == b->bits && a->is_signed == b->is_signed &&
           a->is_symmetric == b->is_symmetric && a->is_narrow == b->is_narrow &&
           a->is_pow2 == b->is_pow2 && a->rounding == b->rounding && a->axis == b->axis;
}

static const char *name_of(const oct_node *n)
{
    return n ? n->name : NULL;
}

/* What differs, or NULL. */
static const char *point_difference(const oct_qpoint *a, const oct_qpoint *b)
{
    const int64_t n_fold = a->fold ? a->fold_rows * a->fold_columns : 0;

    if (!same_text(a->value->name, b->value->name)) return "value";
    if (!same_text(name_of(a->node), name_of(b->node))) return "node";
    if (a->n_moved != b->n_moved || !same_bytes(a->moved, b->moved, a->n_moved, sizeof(int64_t)))
        return "moved";
    if (a->node && a->operand != b->operand) return "operand";
    if (a->role != b->role) return "role";
    if (!same_spec(&a->spec, &b->spec)) return "spec";
    if (a->state != b->state) return "state";
    if (a->dominator != b->dominator) return "dominator";
    if (!same_text(a->reason, b->reason)) return "reason";
    if (!same_text(a->observer, b->observer)) return "observer";
    if (!same_text(a->scale_by, b->scale_by)) return "scale_by";
    if (a->has_seen != b->has_seen) return "has_seen";
    if (a->has_seen && (a->seen_low != b->seen_low || a->seen_high != b->seen_high)) return "seen";
    if (a->n != b->n) return "number of scales";
    if (!same_bytes(a->scale, b->scale, a->n, sizeof(*a->scale))) return "scale";
    if (!same_bytes(a->zero, b->zero, a->n, sizeof(*a->zero))) return "zero point";
    if (!a->fold != !b->fold) return "fold";
    if (a->fold && (a->fold_rows != b->fold_rows || a->fold_columns != b->fold_columns ||
                    memcmp(&a->fold_scale, &b->fold_scale, sizeof(float)) != 0 ||
                    !same_bytes(a->fold, b->fold, n_fold, sizeof(*a->fold))))
        return "fold";
    return NULL;
}

static bool differ(char *why, size_t size, const char *what, const char *name)
{
    if (why) snprintf(why, size, "%s of '%s'", what, name ? name : "?");
    return false;
}

/* By node id, so only for graphs of the same making. */
static bool same_reasons(const oct_qmap *a, const oct_qmap *b, char *why, size_t size)
{
    const int32_t n = a->g->root->n_node_ids, k = b->g->root->n_node_ids;

    for (int32_t i = 0; i < OCT_MAX(n, k); i++) {
        const char *x = i < n ? a->float_reason[i] : NULL, *y = i < k ? b->float_reason[i] : NULL;

        if (i < n && i < k && a->float_why[i] != b->float_why[i])
            return differ(why, size, "float_why", x);
        if (!same_text(x, y)) return differ(why, size, "why a node is float", x ? x : y);
    }
    return true;
}

static bool qmap_equal(const oct_qmap *a, const oct_qmap *b, char *why, size_t why_size)
{
    if (!same_text(a->target->name, b->target->name))
        return differ(why, why_size, "target", a->target->name);
    if (!same_text(a->tail_text, b->tail_text)) return differ(why, why_size, "tail", a->tail_text);
    if (a->n_points != b->n_points) return differ(why, why_size, "number", "points");
    if (a->n_shifts != b->n_shifts) return differ(why, why_size, "number", "shifts");
    for (int32_t i = 0; i < a->n_points; i++) {
        const char *what = point_difference(&a->points[i], &b->points[i]);

        if (what) return differ(why, why_size, what, a->points[i].value->name);
    }
    for (int32_t i = 0; i < a->n_shifts; i++) {
        const oct_qshift *s = &a->shifts[i], *t = &b->shifts[i];

        if (!same_text(s->node->name, t->node->name) || s->n != t->n ||
            !same_bytes(s->shift, t->shift, s->n, sizeof(*s->shift)))
            return differ(why, why_size, "shift", s->node->name);
    }
    return same_reasons(a, b, why, why_size);
}

#endif
