/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-ins: operators that give zeros of types that the caller names. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "op/custom.h"

enum { MAX_RESULTS = 16 };

typedef struct stub {
    oct_ctx *ctx;
    int32_t n;
    oct_op_type type[MAX_RESULTS];
} stub;

static void free_stub(void *p)
{
    stub *s = p;

    oct_free(s->ctx, s);
}

static oct_status shape(void *user, oct_op_call *call)
{
    const stub *s = user;

    if (call->n_out > s->n) {
        call->error = "has more results than its --stub names types";
        return OCT_ERR_ARG;
    }
    memcpy(call->out_type, s->type, (size_t)call->n_out * sizeof(*s->type));
    return OCT_OK;
}

static oct_status run(void *user, oct_op_call *call)
{
    (void)user;
    for (int32_t i = 0; i < call->n_out; i++)
        if (call->out[i])
            memset(oct_tensor_mutable(call->out[i]), 0, oct_tensor_size(call->out[i]));
    return OCT_OK;
}

/* "1x100x4", or nothing for a single number. */
static bool read_dims(const char *at, const char *end, oct_op_type *t)
{
    t->rank = 0;
    while (at < end) {
        char *stop;
        const long long v = strtoll(at, &stop, 10);

        if (stop == at || stop > end || v < 0 || v > INT32_MAX || t->rank == OCT_MAX_RANK ||
            (stop < end && (*stop != 'x' || stop + 1 == end)))
            return false;
        t->dim[t->rank++] = v;
        at = stop < end ? stop + 1 : end;
    }
    return true;
}

/* "float32:1x100x4" */
static bool read_type(const char *at, const char *end, oct_op_type *t)
{
    const char *colon = memchr(at, ':', (size_t)(end - at));
    const size_t len = (size_t)((colon ? colon : end) - at);
    char name[32];

    if (len == 0 || len >= sizeof(name)) return false;
    memcpy(name, at, len);
    name[len] = '\0';
    t->dtype = oct_dtype_by_name(name);
    if (t->dtype == OCT_DTYPE_NONE || t->dtype == OCT_DTYPE_STRING) return false;
    return read_dims(colon ? colon + 1 : end, end, t);
}

static bool read_types(const char *at, stub *s)
{
    for (;;) {
        const char *end = strchr(at, ',');

        if (s->n == MAX_RESULTS || !read_type(at, end ? end : at + strlen(at), &s->type[s->n]))
            return false;
        s->n++;
        if (!end) return true;
        at = end + 1;
    }
}

oct_status oct_register_stub(oct_ctx *ctx, const char *text)
{
    OCT_ENTER(ctx);
    const char *eq = strchr(text, '=');
    stub *s = oct_calloc(ctx, 1, sizeof(*s));
    char *name = eq ? oct_strdup(ctx, text) : NULL;
    oct_op_def d = {.struct_size = sizeof(d),
                    .max_in = -1,
                    .min_out = 1,
                    .shape = shape,
                    .run = run,
                    .user = s};
    oct_status st = !s || (eq && !name) ? OCT_ERR_MEMORY : OCT_OK;

    if (!st) s->ctx = ctx;
    if (!st && (!eq || eq == text || !read_types(eq + 1, s)))
        st = oct_fail(ctx, OCT_ERR_ARG,
                      "stub '%s': want OP=TYPE:DIMS,.. with at most %d types, as "
                      "MyOp=float32:1x100x4,int32:1x1",
                      text, (int)MAX_RESULTS);
    if (!st) {
        name[eq - text] = '\0';
        d.name = name;
        d.max_out = s->n;
        st = oct_custom_keep(ctx, s, free_stub); /* frees it from here on */
        if (!st) {
            st = oct_register_op(ctx, &d);
            s = NULL;
        }
    }
    oct_free(ctx, name);
    oct_free(ctx, s);
    return st;
}
