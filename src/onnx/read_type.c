/* SPDX-License-Identifier: Apache-2.0 */
/* Types of values as an ONNX file declares them. */
#include <string.h>

#include "onnx/read.h"

static oct_status read_dim(oct_reader *r, oct_span bytes, int axis, oct_type *type,
                           const char **name)
{
    oct_pb_dim d;

    OCT_TRY(oct_wire_dim(&r->wire, bytes, &d));
    type->dim[axis] = -1;
    if (d.has_value) {
        /* -1 is what some exporters write for a dimension they do not know. */
        if (d.value < -1)
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "dimension %d is negative (%lld)", axis,
                            (long long)d.value);
        type->dim[axis] = d.value;
    } else if (d.param.size) {
        OCT_TRY(oct_read_text(r, r->root->arena, d.param, "dimension name", name));
    }
    return OCT_OK;
}

static oct_status read_tensor_type(oct_reader *r, oct_span bytes, oct_type *type,
                                   const char ***names)
{
    const char *found[OCT_MAX_RANK] = {0};
    oct_pb_tensor_type pb;
    oct_spans dims;
    bool has_name = false;

    OCT_TRY(oct_wire_tensor_type(&r->wire, bytes, &pb));
    *type = oct_type_unknown((oct_dtype)pb.elem_type);
    if (pb.elem_type != OCT_DTYPE_NONE && pb.elem_type != OCT_DTYPE_STRING &&
        oct_dtype_get(type->dtype)->bits == 0)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "unknown data type %d", (int)pb.elem_type);
    if (!pb.shape.p) return OCT_OK;
    OCT_TRY(oct_wire_shape(&r->wire, pb.shape, &dims));
    if (dims.n > OCT_MAX_RANK)
        return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED, "%zu dimensions, at most %d are supported",
                        dims.n, OCT_MAX_RANK);
    type->rank = (int32_t)dims.n;
    for (int i = 0; i < type->rank; i++) {
        OCT_TRY(read_dim(r, dims.v[i], i, type, &found[i]));
        has_name |= found[i] != NULL;
    }
    if (oct_type_is_static(type) && oct_type_len(type) < 0)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "the number of its elements overflows");
    if (!has_name) return OCT_OK;
    /* Room for any rank: inference may find another one than the file says. */
    if (!(*names = oct_arena_array(r->root->arena, OCT_MAX_RANK, sizeof(char *))))
        return OCT_ERR_MEMORY;
    memcpy(*names, found, sizeof(found));
    return OCT_OK;
}

static oct_status note_declared(oct_reader *r, oct_value *v)
{
    oct_declared *d = oct_arena_alloc(r->wire.arena, sizeof(*d));

    if (!d) return OCT_ERR_MEMORY;
    *d = (oct_declared){.next = r->declared, .value = v, .type = v->type};
    r->declared = d;
    return OCT_OK;
}

oct_status oct_read_value_type(oct_reader *r, const oct_pb_value *info, oct_value *v)
{
    oct_pb_type pb;
    oct_status st;

    if (info->doc.size) OCT_TRY(oct_read_text(r, r->root->arena, info->doc, "doc string", &v->doc));
    if (!info->type.p) return OCT_OK;
    /* An output may be declared as something else where it is an input: the last word counts. */
    v->type = oct_type_unknown(OCT_DTYPE_NONE);
    v->dim_name = NULL;
    v->raw_type = NULL;
    v->raw_type_size = 0;
    OCT_TRY(oct_wire_type(&r->wire, info->type, &pb));
    if (!pb.tensor.p) { /* sequence, optional, map, sparse tensor: carried, not understood */
        if (!info->type.size) return OCT_OK;
        v->raw_type_size = info->type.size;
        v->raw_type =
            oct_arena_strndup(r->root->arena, (const char *)info->type.p, info->type.size);
        return v->raw_type ? OCT_OK : OCT_ERR_MEMORY;
    }
    if ((st = read_tensor_type(r, pb.tensor, &v->type, &v->dim_name))) {
        const char *where = oct_arena_printf(r->wire.arena, "value '%s'", v->name);

        return where ? oct_fail_at(r->ctx, st, where) : st;
    }
    return note_declared(r, v);
}
