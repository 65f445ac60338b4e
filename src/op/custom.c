/* SPDX-License-Identifier: Apache-2.0 */
/* Registered operators: a row each, whose functions call the caller's. */
#include "op/custom.h"

#include <string.h>

#include "base/ctx.h"
#include "base/mem.h"
#include "base/str.h"

#define MAX_OUT 256 /* results of a registered operator's node */

typedef struct custom {
    oct_op row; /* first: a node's row is this */
    oct_op_def def;
    struct custom *next;
    bool any_domain;
} custom;

typedef struct library {
    struct library *next;
    void *handle;
    void (*close)(void *handle);
} library;

typedef struct registry {
    custom *first;
    library *libraries;
} registry;

static void free_custom(oct_ctx *ctx, custom *c)
{
    oct_free(ctx, (void *)(uintptr_t)c->row.name);
    oct_free(ctx, (void *)(uintptr_t)c->row.domain);
    oct_free(ctx, c);
}

static void forget(oct_ctx *ctx, void *p)
{
    registry *r = p;

    while (r->first) {
        custom *c = r->first;

        r->first = c->next;
        free_custom(ctx, c);
    }
    while (r->libraries) {
        library *l = r->libraries;

        r->libraries = l->next;
        l->close(l->handle);
        oct_free(ctx, l);
    }
    oct_free(ctx, r);
}

static registry *registry_of(oct_ctx *ctx)
{
    if (ctx->ops) return ctx->ops;
    ctx->ops = oct_calloc(ctx, 1, sizeof(registry));
    ctx->ops_free = forget;
    return ctx->ops;
}

static oct_status shape(const oct_infer *q);
static oct_status ref(const oct_args *a);

static custom *add(oct_ctx *ctx, const oct_op_def *d, const char *domain)
{
    registry *r = registry_of(ctx);
    custom *c = r ? oct_calloc(ctx, 1, sizeof(*c)) : NULL;

    if (!c) return NULL;
    c->def = *d;
    c->any_domain = !domain;
    c->row = (oct_op){.name = oct_strdup(ctx, d->name),
                      .domain = oct_strdup(ctx, domain ? domain : ""),
                      .since = 1,
                      .min_in = d->min_in,
                      .max_in = d->max_in,
                      .min_out = d->min_out,
                      .max_out = d->max_out,
                      .shape = shape,
                      .ref = ref,
                      .flow = OCT_FLOW_STOP};
    if (!c->row.name || !c->row.domain) {
        free_custom(ctx, c);
        return NULL;
    }
    c->def.name = c->row.name;
    c->next = r->first;
    r->first = c;
    return c;
}

oct_status oct_custom_find(oct_ctx *ctx, const char *domain, const char *name, const oct_op **out)
{
    const registry *r = ctx->ops;
    const custom *any = NULL;

    *out = NULL;
    for (const custom *c = r ? r->first : NULL; c && !*out; c = c->next) {
        if (strcmp(c->row.name, name) != 0) continue;
        if (c->any_domain)
            any = c;
        else if (strcmp(c->row.domain, domain) == 0)
            *out = &c->row;
    }
    if (*out || !any) return OCT_OK;
    any = add(ctx, &any->def, domain); /* a row of this domain, which is then written to files */
    if (!any) return OCT_ERR_MEMORY;
    *out = &any->row;
    return OCT_OK;
}

oct_status oct_custom_keep(oct_ctx *ctx, void *handle, void (*close)(void *handle))
{
    registry *r = registry_of(ctx);
    library *l = r ? oct_calloc(ctx, 1, sizeof(*l)) : NULL;

    if (!l) return OCT_ERR_MEMORY;
    *l = (library){r->libraries, handle, close};
    r->libraries = l;
    return OCT_OK;
}

/* --- calling --- */

static oct_op_type public_type(const oct_type *t)
{
    oct_op_type out = {.dtype = t ? t->dtype : OCT_DTYPE_NONE, .rank = t ? t->rank : -1};

    for (int i = 0; i < out.rank; i++)
        out.dim[i] = t->dim[i];
    return out;
}

static oct_status failed(const oct_node *n, oct_status st, const oct_op_call *call)
{
    const bool known = st > OCT_OK && st <= OCT_ERR_CANCELLED;

    return oct_node_fail(n, known ? st : OCT_ERR_UNSUPPORTED, "%s",
                         call->error ? call->error : "its operator gave no reason for its failure");
}

static oct_status check_type(const oct_node *n, int32_t i, const oct_op_type *from, oct_type *to)
{
    const bool has_rank = from->rank >= -1 && from->rank <= OCT_MAX_RANK;
    bool fits = has_rank && (from->dtype == OCT_DTYPE_NONE ||
                             oct_dtype_get(from->dtype) != oct_dtype_get(OCT_DTYPE_NONE));

    for (int d = 0; fits && d < from->rank; d++)
        fits = from->dim[d] >= -1;
    if (!fits)
        return oct_node_fail(n, OCT_ERR_SHAPE, "its operator gave no valid type for result %d",
                             (int)i);
    *to = oct_type_unknown(from->dtype);
    to->rank = from->rank;
    for (int d = 0; d < from->rank; d++)
        to->dim[d] = from->dim[d];
    return OCT_OK;
}

static oct_status shape(const oct_infer *q)
{
    const custom *c = (const custom *)(const void *)q->node->op;
    const int32_t n_in = q->node->n_in, n_out = q->node->n_out;
    oct_op_type *types;
    oct_op_call call = {.struct_size = sizeof(call), .node = q->node, .n_in = n_in, .n_out = n_out};
    oct_status st;

    if (n_out > MAX_OUT)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "has more than %d results", MAX_OUT);
    if (!(types = oct_calloc(q->ctx, (size_t)n_in + (size_t)n_out + 1, sizeof(*types))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n_in; i++)
        types[i] = public_type(q->in[i]);
    for (int32_t i = 0; i < n_out; i++)
        types[n_in + i] = public_type(NULL);
    call.in_type = types;
    call.out_type = types + n_in;
    call.in = q->data;
    st = c->def.shape(c->def.user, &call);
    if (st) st = failed(q->node, st, &call);
    for (int32_t i = 0; i < n_out && !st; i++)
        st = check_type(q->node, i, &call.out_type[i], &q->out[i]);
    oct_free(q->ctx, types);
    return st;
}

static oct_status ref(const oct_args *a)
{
    const custom *c = (const custom *)(const void *)a->node->op;
    const int32_t n_in = a->node->n_in, n_out = a->node->n_out;
    oct_op_type *types = oct_args_scratch(a, (size_t)n_in + (size_t)n_out + 1, sizeof(*types));
    oct_op_call call = {.struct_size = sizeof(call),
                        .node = a->node,
                        .n_in = n_in,
                        .n_out = n_out,
                        .in = (const oct_tensor *const *)a->in,
                        .out = a->out};
    oct_status st;

    if (!types) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < n_in; i++)
        types[i] = public_type(a->in[i] ? &a->in[i]->type : NULL);
    for (int32_t i = 0; i < n_out; i++)
        types[n_in + i] = public_type(a->out[i] ? &a->out[i]->type : NULL);
    call.in_type = types;
    call.out_type = types + n_in;
    st = c->def.run(c->def.user, &call);
    return st ? failed(a->node, st, &call) : OCT_OK;
}

/* --- registering --- */

static oct_status check_def(oct_ctx *ctx, const oct_op_def *d)
{
    const char *domain = d->domain ? d->domain : "";

    if (!d->name || !d->name[0] || !d->shape || !d->run)
        return oct_fail(ctx, OCT_ERR_ARG,
                        "an operator needs a name, a shape function and a kernel");
    if (d->min_in < 0 || (d->max_in >= 0 && d->max_in < d->min_in) || d->min_out < 1 ||
        (d->max_out >= 0 && d->max_out < d->min_out))
        return oct_fail(ctx, OCT_ERR_ARG,
                        "operator '%s': its numbers of operands or results are wrong", d->name);
    if (oct_op_find(domain, d->name))
        return oct_fail(ctx, OCT_ERR_ARG, "operator '%s': octet has it already", d->name);
    for (const custom *c = ctx->ops ? ((registry *)ctx->ops)->first : NULL; c; c = c->next)
        if (strcmp(c->row.name, d->name) == 0 && strcmp(c->row.domain, domain) == 0 &&
            c->any_domain == !d->domain)
            return oct_fail(ctx, OCT_ERR_ARG, "operator '%s': it was registered before", d->name);
    return OCT_OK;
}

oct_status oct_register_op(oct_ctx *ctx, const oct_op_def *def)
{
    OCT_ENTER(ctx);
    oct_op_def d = {0};

    if (def->struct_size < offsetof(oct_op_def, user))
        return oct_fail(ctx, OCT_ERR_ARG, "struct_size of the operator is not set");
    memcpy(&d, def, OCT_MIN(def->struct_size, sizeof(d)));
    OCT_TRY(check_def(ctx, &d));
    return add(ctx, &d, d.domain) ? OCT_OK : OCT_ERR_MEMORY;
}

/* --- attributes --- */

int64_t oct_node_attr_int(const oct_node *n, const char *name, int64_t fallback)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_INT ? a->i : fallback;
}

float oct_node_attr_f32(const oct_node *n, const char *name, float fallback)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_F32 ? a->f : fallback;
}

const char *oct_node_attr_str(const oct_node *n, const char *name, const char *fallback)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->kind == OCT_ATTR_STRING ? a->s : fallback;
}
