/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits of an NPU a quantized file breaks, whoever made it. */
#include <octet/quant.h>
#include <string.h>

#include "base/sized.h"
#include "quant/lower/lower.h"
#include "quant/npu/limits.h"

struct oct_limit_list {
    oct_ctx *ctx;
    oct_arena *arena;
    oct_limit_info *at;
    size_t n, cap;
};

typedef struct checking {
    oct_limit_list *list;
    const oct_qmap *m;
    bool is_of_channels;
} checking;

static const char *right_of(oct_arena *a, const oct_npu_limit *l, const oct_npu_breach *b)
{
    if (!b->point) return l->right ? l->right : "";
    return oct_arena_printf(a, "scale 2^%d instead of 2^%d for '%s'", -b->to, -b->from,
                            b->point->value->name);
}

/* One entry for a row, at the first channel that breaks it. */
static oct_status check_row(checking *c, const oct_npu_limit *l, const oct_npu_site *s,
                            const char *what)
{
    oct_limit_list *list = c->list;
    oct_limit_info info = {.struct_size = sizeof(info), .limit = l->name, .quantity = l->quantity};
    oct_npu_breach b;
    int64_t k = 0;

    if (!l->applies(s) || (c->is_of_channels && !l->is_of_channels)) return OCT_OK;
    while (k < oct_npu_site_channels(s) && !oct_npu_breaks(l, s, k, &b))
        k++;
    if (k == oct_npu_site_channels(s)) return OCT_OK;
    info.value = b.value;
    info.low = b.low;
    info.high = b.high;
    info.what = oct_arena_strdup(list->arena, what);
    info.right = right_of(list->arena, l, &b);
    if (!info.what || !info.right) return OCT_ERR_MEMORY;
    OCT_TRY(oct_grow(list->ctx, &list->at, &list->cap, list->n + 1, sizeof(info)));
    list->at[list->n++] = info;
    return OCT_OK;
}

static oct_status check_tensors(checking *c)
{
    for (int32_t i = 0; i < c->m->n_points; i++) {
        const oct_npu_limit *l;
        oct_npu_site s;

        oct_npu_site_of_point(c->m, i, &s);
        for (int r = 0; (l = oct_npu_limit_at(r)); r++)
            if (l->is_of_tensor) OCT_TRY(check_row(c, l, &s, c->m->points[i].value->name));
    }
    return OCT_OK;
}

static oct_status check_nodes(checking *c)
{
    for (const oct_node *n = c->m->g->first; n; n = n->next) {
        const oct_npu_limit *l;
        oct_npu_site s;

        oct_npu_site_of_node(c->m, NULL, n, &s);
        for (int r = 0; (l = oct_npu_limit_at(r)); r++)
            if (!l->is_of_tensor) OCT_TRY(check_row(c, l, &s, n->name));
    }
    return OCT_OK;
}

static oct_status check(checking *c, const oct_graph *g)
{
    oct_quant_info info = {.struct_size = sizeof(info)};
    const oct_target *t;

    oct_graph_quant_info(g, &info);
    if (info.quantizers == 0)
        return oct_fail(g->ctx, OCT_ERR_ARG,
                        "nothing in this network is quantized: there is nothing to check");
    t = info.target ? oct_target_named(info.target) : NULL;
    c->is_of_channels = t && t->bias == OCT_BIAS_POW2 && t->weight.axis != OCT_QSPEC_PER_TENSOR;
    OCT_TRY(check_tensors(c));
    return check_nodes(c);
}

oct_status oct_graph_npu_check(const oct_graph *g, oct_limit_list **out)
{
    OCT_ENTER(g->ctx);
    oct_limit_list *list = oct_calloc(g->ctx, 1, sizeof(*list));
    checking c = {.list = list};
    oct_graph *plain = NULL;
    oct_qmap *m = NULL;
    oct_status st;

    if (!list) return OCT_ERR_MEMORY;
    list->ctx = g->ctx;
    list->arena = oct_arena_new(g->ctx);
    st = list->arena ? oct_raise(g, &plain, &m) : OCT_ERR_MEMORY;
    c.m = m;
    if (!st) st = check(&c, g);
    oct_qmap_free(m);
    oct_graph_free(plain);
    if (st) {
        oct_limit_list_free(list);
        return st;
    }
    *out = list;
    return OCT_OK;
}

void oct_limit_list_free(oct_limit_list *l)
{
    if (!l) return;
    oct_free(l->ctx, l->at);
    oct_arena_free(l->arena);
    oct_free(l->ctx, l);
}

int32_t oct_limit_list_at(const oct_limit_list *l, int32_t i, oct_limit_info *out)
{
    if (i < 0 || (size_t)i >= l->n) return 0;
    oct_sized_give(out, &l->at[i], sizeof(*out));
    return 1;
}
