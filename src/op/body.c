/* SPDX-License-Identifier: Apache-2.0 */
/* Types of bodies, and results of rounds stacked along a new axis. */
#include "op/body.h"

#include <string.h>

#include "op/move.h"

oct_type oct_type_join(const oct_type *a, const oct_type *b)
{
    oct_type t = *a;

    if (t.dtype == OCT_DTYPE_NONE) t.dtype = b->dtype;
    if (a->rank != b->rank) return oct_type_unknown(t.dtype);
    for (int32_t d = 0; d < t.rank; d++)
        if (a->dim[d] != b->dim[d]) t.dim[d] = -1;
    return t;
}

oct_status oct_body_check(const oct_node *n, const oct_graph *body, int64_t n_in, int64_t n_out)
{
    if (body && body->n_inputs == n_in && body->n_outputs == n_out) return OCT_OK;
    return oct_node_fail(n, OCT_ERR_FORMAT,
                         "the body has %d inputs and %d outputs, expected %lld and %lld",
                         body ? (int)body->n_inputs : 0, body ? (int)body->n_outputs : 0,
                         (long long)n_in, (long long)n_out);
}

oct_status oct_body_run(const oct_args *a, const oct_graph *body, oct_tensor *const *ins,
                        oct_tensor **outs)
{
    const oct_status st = oct_graph_eval(body, ins, outs, a->env);

    for (int32_t i = 0; i < body->n_outputs && st; i++)
        outs[i] = NULL;
    return st;
}

oct_status oct_stack_type(const oct_node *n, const oct_type *item, int64_t len, int64_t axis,
                          oct_type *out)
{
    oct_type t = oct_type_unknown(item->dtype);
    int32_t at;

    *out = t;
    if (item->rank < 0) return OCT_OK;
    if (item->rank == OCT_MAX_RANK)
        return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "a result's rank is above %d", OCT_MAX_RANK);
    OCT_TRY(oct_axis(n, axis, item->rank + 1, &at));
    t.rank = item->rank + 1;
    for (int32_t d = 0, from = 0; d < t.rank; d++)
        t.dim[d] = d == at ? len : item->dim[from++];
    *out = t;
    return OCT_OK;
}

oct_status oct_stack_push(const oct_args *a, oct_stack *s, const oct_tensor *t)
{
    size_t need;

    if (oct_dtype_size(t->type.dtype) == 0)
        return oct_node_fail(a->node, OCT_ERR_UNSUPPORTED, "cannot stack %s",
                             oct_dtype_name(t->type.dtype));
    if (s->n == 0) s->item = t->type;
    if (!oct_type_equal(&s->item, &t->type)) {
        char was[OCT_TYPE_TEXT_SIZE], is[OCT_TYPE_TEXT_SIZE];
        return oct_node_fail(a->node, OCT_ERR_SHAPE, "a result changes from %s to %s",
                             oct_type_text(&s->item, was), oct_type_text(&t->type, is));
    }
    if (!oct_add_size(s->size, t->size, &need))
        return oct_node_fail(a->node, OCT_ERR_MEMORY, "out of memory: %zu bytes and more", s->size);
    OCT_TRY(oct_grow(a->ctx, &s->data, &s->cap, OCT_MAX(need, 1), 1));
    if (t->size) memcpy(s->data + s->size, t->data, t->size);
    s->size = need;
    s->n++;
    return OCT_OK;
}

oct_status oct_stack_finish(const oct_args *a, const oct_stack *s, int i, const oct_value *like,
                            int64_t axis, bool reverse)
{
    oct_type item = s->n ? s->item : like->type, y;
    oct_move m;
    int32_t at;

    if (!oct_node_out(a->node, i)) return OCT_OK;
    if (s->n == 0) { /* no round ran: no dim is known, and none matters */
        if (item.dtype == OCT_DTYPE_NONE) item.dtype = OCT_DTYPE_F32;
        item.rank = OCT_MAX(item.rank, 0);
        for (int32_t d = 0; d < item.rank; d++)
            item.dim[d] = OCT_MAX(item.dim[d], 0);
    }
    OCT_TRY(oct_stack_type(a->node, &item, s->n, axis, &y));
    OCT_TRY(oct_args_alloc(a, i, &y));
    OCT_TRY(oct_axis(a->node, axis, y.rank, &at));
    const int64_t inner = oct_type_span(&y, at + 1, y.rank), len = oct_type_len(&item);
    oct_move_init(&m);
    oct_move_add(&m, oct_type_span(&y, 0, at), inner, s->n * inner);
    oct_move_add(&m, s->n, reverse ? -len : len, inner);
    oct_move_add(&m, inner, 1, 1);
    oct_move_run(&m, y.dtype, s->data, reverse ? (s->n - 1) * len : 0, a->out[i]->data, 0,
                 a->n_threads);
    return OCT_OK;
}

void oct_stack_fini(oct_stack *s, oct_ctx *ctx)
{
    oct_free(ctx, s->data);
    *s = (oct_stack){.data = NULL};
}
