/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files to graphs: the model message, and the public entry points. */
#include <string.h>

#include <octet/onnx.h>

#include "base/sniff.h"
#include "onnx/onnx.h"
#include "onnx/read.h"

oct_status oct_read_text(oct_reader *r, oct_arena *a, oct_span text, const char *what,
                         const char **out)
{
    char *s;

    if (text.size && memchr(text.p, 0, text.size))
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "%s with a zero byte, at byte %zu of the file",
                        what, (size_t)(text.p - r->wire.all.p));
    if (!(s = oct_arena_strndup(a, (const char *)text.p, text.size))) return OCT_ERR_MEMORY;
    *out = s;
    return OCT_OK;
}

/* "ai.onnx" is another way to write the standard domain. */
static const char *plain_domain(const char *domain)
{
    return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

oct_status oct_read_opsets(oct_reader *r, const oct_spans *list, oct_opsets *out)
{
    oct_opset *v = oct_arena_array(r->root->arena, OCT_MAX(list->n, 1), sizeof(*v));

    if (!v) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < list->n; i++) {
        oct_pb_pair pb;

        OCT_TRY(oct_wire_opset(&r->wire, list->v[i], &pb));
        OCT_TRY(oct_read_text(r, r->root->arena, pb.key, "opset domain", &v[i].domain));
        v[i].domain = plain_domain(v[i].domain);
        v[i].version = pb.version;
        if (v[i].domain[0]) continue;
        if (pb.version < 1)
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "opset %lld does not exist",
                            (long long)pb.version);
        if (pb.version > OCT_OPSET_INTERNAL)
            return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED,
                            "opset %lld is newer than %d, the newest that octet knows; export the "
                            "model with an older one",
                            (long long)pb.version, OCT_OPSET_INTERNAL);
    }
    *out = (oct_opsets){v, (int32_t)list->n};
    return OCT_OK;
}

static oct_status read_props(oct_reader *r, const oct_spans *list, oct_model_info *info)
{
    oct_arena *a = r->root->arena;

    if (!(info->props = oct_arena_array(a, OCT_MAX(list->n, 1), sizeof(oct_prop))))
        return OCT_ERR_MEMORY;
    for (size_t i = 0; i < list->n; i++) {
        oct_prop *p = &info->props[i];
        oct_pb_pair pb;

        OCT_TRY(oct_wire_prop(&r->wire, list->v[i], &pb));
        OCT_TRY(oct_read_text(r, a, pb.key, "metadata key", &p->key));
        OCT_TRY(oct_read_text(r, a, pb.value, "metadata value", &p->value));
        info->n_props++;
    }
    return OCT_OK;
}

static oct_status read_info(oct_reader *r, const oct_pb_model *pb)
{
    oct_model_info *info = &r->root->info;
    oct_arena *a = r->root->arena;

    r->ir_version = info->ir_version = pb->ir_version;
    info->model_version = pb->model_version;
    OCT_TRY(oct_read_text(r, a, pb->producer_name, "producer name", &info->producer_name));
    OCT_TRY(oct_read_text(r, a, pb->producer_version, "producer version", &info->producer_version));
    OCT_TRY(oct_read_text(r, a, pb->domain, "model domain", &info->domain));
    OCT_TRY(oct_read_text(r, a, pb->doc, "doc string", &info->doc));
    OCT_TRY(read_props(r, &pb->props, info));
    OCT_TRY(oct_read_opsets(r, &pb->opsets, &r->opsets));
    if (!r->opsets.n && pb->ir_version < 3) { /* opsets were not yet written into files */
        r->opsets.v[0] = (oct_opset){.domain = "", .version = 1};
        r->opsets.n = 1;
    }
    info->opsets = r->opsets.v;
    info->n_opsets = r->opsets.n;
    return OCT_OK;
}

static bool contradicts(const oct_type *a, const oct_type *b)
{
    if (a->dtype != OCT_DTYPE_NONE && b->dtype != OCT_DTYPE_NONE && a->dtype != b->dtype)
        return true;
    if (a->rank < 0 || b->rank < 0) return false;
    if (a->rank != b->rank) return true;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] >= 0 && b->dim[i] >= 0 && a->dim[i] != b->dim[i]) return true;
    return false;
}

/* Inference has the last word on types; where the file says otherwise, its user should know. */
static void compare_declared(oct_reader *r)
{
    char want[OCT_TYPE_TEXT_SIZE], got[OCT_TYPE_TEXT_SIZE];

    for (const oct_declared *d = r->declared; d; d = d->next) {
        oct_value *v = d->value;

        if (v->is_input || v->data) continue;
        if (contradicts(&d->type, &v->type))
            oct_log(r->ctx, OCT_LOG_WARN, "value '%s' is declared as %s, but its node makes %s",
                    v->name, oct_type_text(&d->type, want), oct_type_text(&v->type, got));
        if (!v->dim_name) continue;
        if (v->type.rank != d->type.rank) v->dim_name = NULL;
        for (int i = 0; v->dim_name && i < v->type.rank; i++)
            if (v->type.dim[i] >= 0) v->dim_name[i] = NULL; /* known now: needs no name */
    }
}

/* Shapes that nodes make of attributes and constants may be too large to exist. */
static oct_status check_types(const oct_graph *g)
{
    for (int32_t i = 0; i < g->n_value_ids; i++) {
        const oct_value *v = g->values[i];

        if (v && oct_type_is_static(&v->type) && oct_type_len(&v->type) < 0)
            return oct_fail(g->ctx, OCT_ERR_SHAPE,
                            "value '%s': the number of its elements overflows", v->name);
    }
    return OCT_OK;
}

static oct_status read_model(oct_reader *r)
{
    oct_pb_model pb;

    OCT_TRY(oct_wire_model(&r->wire, r->wire.all, &pb));
    if (!pb.graph.n)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "no graph in it: is this an ONNX model?");
    if (pb.graph.n > 1) return oct_fail(r->ctx, OCT_ERR_FORMAT, "more than one graph in it");
    OCT_TRY(read_info(r, &pb));
    OCT_TRY(oct_read_functions(r, &pb.functions));
    OCT_TRY(oct_read_graph(r, NULL, pb.graph.v[0], r->root));
    OCT_TRY(oct_graph_verify(r->root));
    OCT_TRY(oct_graph_infer(r->root));
    OCT_TRY(check_types(r->root));
    compare_declared(r);
    return OCT_OK;
}

static void unref_files(oct_reader *r)
{
    const oct_external *e = r->externals;

    for (; e; e = e->next)
        oct_file_unref(e->file);
}

static oct_status read_buffer(oct_ctx *ctx, oct_span all, oct_file *file, const char *folder,
                              oct_graph **out)
{
    oct_reader r = {.ctx = ctx, .file = file, .folder = folder};
    oct_map *const maps[] = {&r.functions, &r.files, &r.node_names, &r.value_names, &r.rows};
    oct_status st;

    r.wire = (oct_wire){.ctx = ctx, .arena = oct_arena_new(ctx), .all = all};
    for (size_t i = 0; i < OCT_COUNT(maps); i++)
        oct_map_init(maps[i], ctx);
    st = r.wire.arena ? oct_graph_new(ctx, "", &r.root) : OCT_ERR_MEMORY;
    if (!st) st = read_model(&r);
    if (!st)
        *out = r.root;
    else
        oct_graph_free(r.root);
    for (size_t i = 0; i < r.n_held; i++)
        oct_tensor_unref(r.held[i]);
    oct_free(ctx, r.held);
    unref_files(&r);
    for (size_t i = 0; i < OCT_COUNT(maps); i++)
        oct_map_fini(maps[i]);
    oct_arena_free(r.wire.arena);
    return st;
}

oct_status oct_onnx_load_memory(oct_ctx *ctx, const void *data, size_t size, oct_graph **out)
{
    OCT_ENTER(ctx);

    return read_buffer(ctx, (oct_span){data, size}, NULL, NULL, out);
}

oct_status oct_onnx_load_part(oct_ctx *ctx, oct_file *f, size_t offset, size_t size,
                              oct_graph **out)
{
    return read_buffer(ctx, (oct_span){oct_file_data(f) + offset, size}, f, NULL, out);
}

/* --- files that are something else, or a part --- */

static bool next_varint(oct_span *s, uint64_t *out)
{
    *out = 0;
    for (int shift = 0; shift < 64 && s->size; shift += 7) {
        const uint8_t b = *s->p++;

        s->size--;
        *out |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80)) return true;
    }
    return false;
}

/* Does the file begin as a network does, and end before one of its parts? */
static bool is_cut(oct_span s, uint64_t *missing)
{
    enum { IR_VERSION = 0x08, MOST_VERSION = 100 };
    uint64_t tag, len;

    if (s.size < 2 || s.p[0] != IR_VERSION || s.p[1] > MOST_VERSION) return false;
    while (next_varint(&s, &tag) && next_varint(&s, &len)) {
        if ((tag & 7) == 0) continue; /* a number: it was the value */
        if ((tag & 7) != 2) return false;
        if (len > s.size) {
            *missing = len - s.size;
            return len < (uint64_t)1 << 40;
        }
        s.p += len;
        s.size -= (size_t)len;
    }
    return false;
}

/* What the file is instead of a network, if that can be told. */
static oct_status say_what_it_is(oct_ctx *ctx, oct_status st, oct_span all)
{
    uint64_t missing = 0;
    const oct_kind *kind;

    if (st != OCT_ERR_FORMAT) return st;
    if (is_cut(all, &missing))
        return oct_fail(ctx, st,
                        "the file ends early (%zu bytes; %llu more are missing): was the download "
                        "complete?",
                        all.size, (unsigned long long)missing);
    if (!(kind = oct_sniff(all.p, all.size))) return st;
    return oct_fail(ctx, st, "is %s, not an ONNX network%s%s", kind->name, kind->advice ? "; " : "",
                    kind->advice ? kind->advice : "");
}

oct_status oct_onnx_load(oct_ctx *ctx, const char *path, oct_graph **out)
{
    OCT_ENTER(ctx);
    const char *slash = strrchr(path, '/');
    oct_file *f = NULL;
    char *folder = NULL;
    oct_status st;

    if ((st = oct_file_map(ctx, path, &f))) goto done;
    folder = oct_strdup(ctx, slash ? path : ".");
    if (!folder) {
        st = OCT_ERR_MEMORY;
        goto done;
    }
    if (slash) folder[OCT_MAX(slash - path, 1)] = 0; /* "/model.onnx": the folder is "/" */
    st = read_buffer(ctx, (oct_span){oct_file_data(f), oct_file_size(f)}, f, folder, out);
    if (st) {
        (void)say_what_it_is(ctx, st, (oct_span){oct_file_data(f), oct_file_size(f)});
        oct_fail_at(ctx, st, path);
    }
done:
    oct_free(ctx, folder);
    oct_file_unref(f);
    return st;
}
