/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of flat buffers: ranges of parameters, and their chunks. */
#include "optim/params.h"

#include <string.h>

#include "base/parallel.h"

#define ALIGN 16 /* floats: a cache line, and what kernels like of their operands */

void oct_params_init(oct_params *p, oct_ctx *ctx)
{
    *p = (oct_params){.ctx = ctx};
}

void oct_params_fini(oct_params *p)
{
    oct_free(p->ctx, p->v);
    oct_free(p->ctx, p->chunks);
    oct_free(p->ctx, p->partial);
    oct_params_init(p, p->ctx);
}

oct_status oct_params_add(oct_params *p, const char *name, int64_t len, oct_param_kind kind)
{
    int64_t end;

    if (len < 0 || !oct_add_i64(p->len, len, &end) || !oct_add_i64(end, ALIGN - 1, &end))
        return oct_fail(p->ctx, OCT_ERR_ARG, "parameter '%s': too large", name);
    if (p->n == INT32_MAX) return oct_fail(p->ctx, OCT_ERR_ARG, "too many parameters");
    OCT_TRY(oct_grow(p->ctx, &p->v, &p->cap, (size_t)p->n + 1, sizeof(*p->v)));
    p->v[p->n++] =
        (oct_param){.name = name, .offset = p->len, .len = len, .kind = kind, .rate = 1.0};
    p->len = end / ALIGN * ALIGN;
    return OCT_OK;
}

oct_status oct_params_add_value(oct_params *p, oct_value *v, oct_param_kind kind)
{
    const int64_t len = oct_type_len(&v->type);
    char text[OCT_TYPE_TEXT_SIZE];

    if (v->type.dtype != OCT_DTYPE_F32 || len < 0)
        return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED,
                        "parameter '%s' is %s; only float32 of a known shape can be trained",
                        v->name, oct_type_text(&v->type, text));
    OCT_TRY(oct_params_add(p, v->name, len, kind));
    p->v[p->n - 1].value = v;
    return OCT_OK;
}

void oct_params_set_decay(oct_params *p, double decay, bool all)
{
    for (int32_t i = 0; i < p->n; i++)
        if (p->v[i].kind < OCT_PARAM_STEP_SIZE) /* a scale or zero point has no reason to shrink */
            p->v[i].decay = all || p->v[i].kind == OCT_PARAM_WEIGHT ? decay : 0.0;
}

oct_status oct_params_finish(oct_params *p)
{
    int64_t n = 0, k = 0;

    for (int32_t i = 0; i < p->n; i++)
        n += oct_ceil_div(p->v[i].len, OCT_GRAIN_ELEMENTS);
    oct_free(p->ctx, p->chunks);
    oct_free(p->ctx, p->partial);
    p->n_chunks = n;
    p->chunks = oct_calloc(p->ctx, (size_t)OCT_MAX(n, 1), sizeof(*p->chunks));
    p->partial = oct_calloc(p->ctx, (size_t)OCT_MAX(n, 1), sizeof(*p->partial));
    if (!p->chunks || !p->partial) return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < p->n; i++) {
        for (int64_t at = 0; at < p->v[i].len; at += OCT_GRAIN_ELEMENTS) {
            const int64_t end = OCT_MIN(at + OCT_GRAIN_ELEMENTS, p->v[i].len);

            p->chunks[k++] = (oct_param_chunk){i, at, end};
        }
    }
    return OCT_OK;
}

float *oct_params_buffer(const oct_params *p)
{
    return oct_calloc(p->ctx, (size_t)OCT_MAX(p->len, 1), sizeof(float));
}

void oct_params_load(const oct_params *p, float *flat)
{
    for (int32_t i = 0; i < p->n; i++) {
        const oct_tensor *t = p->v[i].value ? oct_value_known(p->v[i].value) : NULL;

        if (t && t->size) memcpy(flat + p->v[i].offset, t->data, t->size);
    }
}

oct_status oct_params_store(const oct_params *p, const float *flat)
{
    for (int32_t i = 0; i < p->n; i++) {
        oct_value *v = p->v[i].value;
        oct_tensor *t = NULL;

        if (!v || !oct_value_known(v)) continue;
        /* A new tensor: copies of the graph share the old one. */
        OCT_TRY(oct_tensor_make(p->ctx, &v->type, &t));
        if (t->size) memcpy(t->data, flat + p->v[i].offset, t->size);
        oct_tensor_unref(oct_value_known(v));
        *(v->data ? &v->data : &v->initial) = t;
    }
    return OCT_OK;
}

void oct_params_pointers(const oct_params *p, const float *flat, const float **at)
{
    for (int32_t i = 0; i < p->n; i++)
        at[i] = flat + p->v[i].offset;
}

int32_t oct_params_find(const oct_params *p, const char *name)
{
    for (int32_t i = 0; i < p->n; i++)
        if (strcmp(p->v[i].name, name) == 0) return i;
    return -1;
}
