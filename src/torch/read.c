/* SPDX-License-Identifier: Apache-2.0 */
/* torch.export archives to graphs: finds the program in the archive and translates its nodes. */
#include "torch/torch.h"

#include <string.h>

#include "base/str.h"
#include "torch/aten.h"

#define OPSET      18 /* in which the graph is written as ONNX, unless a node needs a newer one */
#define IR_VERSION 8

/* --- the program in the archive --- */

typedef struct place {
    oct_member *json;
    const char *root, *model; /* "resnet/", "model" */
} place;

/* "ROOT/models/NAME.json": true, and its parts. */
static bool is_model(oct_arena *a, const char *path, place *out)
{
    static const char folder[] = "models/";
    const char *slash = strrchr(path, '/'), *begin;
    const size_t n = sizeof(folder) - 1, len = strlen(path);

    if (!slash || len < 5 || strcmp(path + len - 5, ".json") != 0) return false;
    begin = slash + 1 - n;
    if ((size_t)(slash + 1 - path) < n || strncmp(begin, folder, n) != 0) return false;
    if (begin > path && begin[-1] != '/') return false;
    out->root = oct_arena_strndup(a, path, (size_t)(begin - path));
    out->model = oct_arena_strndup(a, slash + 1, len - 5 - (size_t)(slash + 1 - path));
    return out->root && out->model;
}

/* Which programs there are instead of the one: for the message. */
static oct_status fail_choice(oct_ctx *ctx, oct_archive *z, int n)
{
    for (size_t i = 0; i < oct_archive_count(z) && !n; i++)
        if (strstr(oct_archive_at(z, i)->name, "data/aotinductor/"))
            return oct_fail(ctx, OCT_ERR_UNSUPPORTED,
                            "it holds a compiled program (AOTInductor) and no network; save the "
                            "exported one: torch.export.save(ep, \"model.pt2\")");
    if (!n)
        return oct_fail(ctx, OCT_ERR_FORMAT,
                        "no exported program in it (models/*.json); save one with "
                        "torch.export.save(torch.export.export(model, (example,)), \"model.pt2\")");
    return oct_fail(ctx, OCT_ERR_UNSUPPORTED,
                    "%d programs in it and none is called \"model\"; save one of them alone", n);
}

static oct_status find_program(oct_ctx *ctx, oct_arena *arena, oct_archive *z, place *out)
{
    static const char old[] = "serialized_exported_program.json";
    int n = 0;

    for (size_t i = 0; i < oct_archive_count(z); i++) {
        oct_member *m = oct_archive_at(z, i);
        place p = {.json = m};

        if (!is_model(arena, m->name, &p)) continue;
        if (n++ == 0 || strcmp(p.model, "model") == 0) *out = p;
    }
    if (n == 1 || (n > 1 && strcmp(out->model, "model") == 0)) return OCT_OK;
    if (n == 0 && (out->json = oct_archive_find(z, old))) {
        out->root = "";
        out->model = "model";
        return OCT_OK;
    }
    return fail_choice(ctx, z, n);
}

/* --- inputs and outputs --- */

static oct_status add_input(oct_torch *t, const oct_spec *spec)
{
    oct_slot *s;
    int32_t rank;

    if (spec->arg.kind != OCT_ARG_TENSOR) {
        if (spec->arg.kind == OCT_ARG_SYM)
            return oct_fail(t->ctx, OCT_ERR_UNSUPPORTED,
                            "input '%.200s' is a number, not a tensor; export the network with "
                            "that number fixed",
                            spec->arg.s);
        return OCT_OK; /* a number that was fixed when the program was exported */
    }
    OCT_TRY(oct_torch_define(t, spec->arg.s, &s));
    if (spec->kind != OCT_SPEC_USER) {
        s->spec = spec;
        return OCT_OK;
    }
    if (!s->meta || !s->meta->type.dtype)
        return oct_fail(t->ctx, OCT_ERR_UNSUPPORTED, "input '%.200s' has no known type",
                        spec->arg.s);
    if (!oct_torch_unique(t, &t->value_names, spec->arg.s)) return OCT_ERR_MEMORY;
    if (!(s->v = oct_value_new(t->g, spec->arg.s, &s->meta->type))) return OCT_ERR_MEMORY;
    s->v->is_declared = true;
    rank = s->meta->type.rank;
    if (rank > 0 && !(s->v->dim_name = oct_arena_array(t->g->arena, (size_t)rank, sizeof(char *))))
        return OCT_ERR_MEMORY;
    for (int32_t i = 0; i < rank; i++)
        if (s->meta->dim_name[i] && s->meta->type.dim[i] < 0 &&
            !(s->v->dim_name[i] = oct_arena_strdup(t->g->arena, s->meta->dim_name[i])))
            return OCT_ERR_MEMORY;
    return oct_graph_add_input(t->g, s->v);
}

static oct_status add_output(oct_torch *t, const oct_spec *spec)
{
    static const oct_call_node whole = {.target = "output", .path = "", .classes = ""};
    oct_aten a = {.t = t, .b = &t->b, .n = &whole};
    const char *name;
    oct_value *v;

    if (spec->kind != OCT_SPEC_USER || spec->arg.kind != OCT_ARG_TENSOR) return OCT_OK;
    v = oct_torch_read(t, oct_torch_slot(t, spec->arg.s));
    OCT_TRY(t->b.status);
    if (!v) return oct_fail(t->ctx, OCT_ERR_FORMAT, "output '%.200s' is missing", spec->arg.s);
    if (v->is_input || v->is_output || v->data)
        v = oct_aten_emit(&a, &oct_op_identity, v, NULL, NULL);
    OCT_TRY(t->b.status);
    if (spec->name || strchr(v->name, '~')) {
        name = oct_torch_unique(t, &t->value_names, spec->name ? spec->name : spec->arg.s);
        if (!name || !(v->name = oct_arena_strdup(t->g->arena, name))) return OCT_ERR_MEMORY;
    }
    return oct_graph_add_output(t->g, v);
}

/* --- nodes --- */

/* All operators octet does not know, in one message. */
static oct_status check_targets(oct_torch *t)
{
    const oct_program *p = t->p;
    oct_map seen;
    oct_str text;
    oct_status st = OCT_OK;
    int n = 0;

    oct_map_init(&seen, t->ctx);
    oct_str_init(&text, t->ctx);
    for (size_t i = 0; i < p->n_nodes && !st; i++) {
        const oct_call_node *node = &p->nodes[i];

        if (oct_aten_row_of(node->target) || oct_map_get(&seen, node->target)) continue;
        oct_str_printf(&text, "%s%.100s", n++ ? ", " : "", node->target);
        if (*node->path) oct_str_printf(&text, " (in %.80s)", node->path);
        st = oct_map_put(&seen, node->target, (void *)(uintptr_t)node);
    }
    if (!st && n)
        st = oct_fail(t->ctx, OCT_ERR_UNSUPPORTED,
                      "octet does not know %s of torch.export: %.600s; try "
                      "ep.run_decompositions() before saving, or torch.onnx.export()",
                      n == 1 ? "this operator" : "these operators", text.s ? text.s : "?");
    oct_str_fini(&text);
    oct_map_fini(&seen);
    return st;
}

static oct_status fail_node(oct_torch *t, const oct_call_node *n, oct_status st)
{
    const char *name = n->n_out && n->out[0].kind == OCT_ARG_TENSOR ? n->out[0].s : "";
    const char *where = oct_arena_printf(t->arena, "node '%.100s' (%.100s%s%.200s)", name,
                                         n->target, *n->path ? " in " : "", n->path);

    return where ? oct_fail_at(t->ctx, st, where) : st;
}

static oct_status translate(oct_torch *t)
{
    const oct_program *p = t->p;

    OCT_TRY(check_targets(t));
    for (int32_t i = 0; i < p->n_in; i++)
        OCT_TRY(add_input(t, &p->in[i]));
    for (size_t i = 0; i < p->n_nodes; i++) {
        const oct_call_node *n = &p->nodes[i];
        oct_status st = oct_torch_call(t, n, oct_aten_row_of(n->target));

        if (!st) st = t->b.status;
        if (st) return fail_node(t, n, st);
    }
    for (int32_t i = 0; i < p->n_out; i++)
        OCT_TRY(add_output(t, &p->out[i]));
    if (!t->g->n_outputs) return oct_fail(t->ctx, OCT_ERR_FORMAT, "it returns no tensor");
    return OCT_OK;
}

/* --- the whole --- */

static oct_status set_info(oct_torch *t)
{
    oct_model_info *info = &t->g->info;

    info->ir_version = IR_VERSION;
    info->producer_name = "pytorch";
    info->producer_version = oct_arena_strdup(t->g->arena, t->p->torch_version);
    info->opsets = oct_arena_array(t->g->arena, 1, sizeof(*info->opsets));
    if (!info->producer_version || !info->opsets) return OCT_ERR_MEMORY;
    info->opsets[0] = (oct_opset){.domain = "", .version = OPSET};
    info->n_opsets = 1;
    return OCT_OK;
}

/* Shapes that nodes make of arguments may be too large to exist. */
static oct_status check_sizes(const oct_graph *g)
{
    for (int32_t i = 0; i < g->n_value_ids; i++) {
        const oct_value *v = g->values[i];

        if (v && oct_type_is_static(&v->type) && oct_type_len(&v->type) < 0)
            return oct_fail(g->ctx, OCT_ERR_SHAPE, "'%.200s' has more elements than can be counted",
                            v->name);
    }
    return OCT_OK;
}

static oct_status build(oct_torch *t, oct_archive *z, const place *at)
{
    oct_map *const maps[] = {&t->slots, &t->node_names, &t->value_names};
    oct_status st;

    for (size_t i = 0; i < OCT_COUNT(maps); i++)
        oct_map_init(maps[i], t->ctx);
    st = oct_weights_open(t->p, z, at->root, at->model, &t->weights);
    if (!st) st = oct_graph_new(t->ctx, at->model, &t->g);
    t->b.g = t->g;
    if (!st) st = translate(t);
    if (!st) st = set_info(t);
    if (!st) st = oct_graph_verify(t->g);
    if (!st) st = oct_graph_infer(t->g);
    if (!st) st = check_sizes(t->g);
    oct_weights_fini(&t->weights);
    for (size_t i = 0; i < OCT_COUNT(maps); i++)
        oct_map_fini(maps[i]);
    return st;
}

static oct_status load(oct_ctx *ctx, oct_file *file, oct_span_of bytes, oct_graph **out)
{
    oct_archive *z = NULL;
    oct_program p = {.ctx = ctx};
    oct_torch t = {.ctx = ctx, .p = &p};
    oct_span_of json;
    place at = {0};
    oct_status st;

    if (!(t.arena = oct_arena_new(ctx))) return OCT_ERR_MEMORY;
    if ((st = oct_archive_open(ctx, file, bytes, &z))) goto done;
    if ((st = find_program(ctx, t.arena, z, &at))) goto done;
    if ((st = oct_archive_bytes(z, at.json, &json))) goto done;
    if ((st = oct_program_read(ctx, json, &p))) {
        oct_fail_at(ctx, st, at.json->name);
        goto done;
    }
    st = build(&t, z, &at);
done:
    if (st)
        oct_graph_free(t.g);
    else
        *out = t.g;
    if (p.arena) oct_program_fini(&p);
    oct_archive_close(z);
    oct_arena_free(t.arena);
    return st;
}

oct_status oct_torch_load(oct_ctx *ctx, oct_file *file, oct_graph **out)
{
    return load(ctx, file, (oct_span_of){oct_file_data(file), oct_file_size(file)}, out);
}

oct_status oct_torch_load_memory(oct_ctx *ctx, const void *data, size_t size, oct_graph **out)
{
    return load(ctx, NULL, (oct_span_of){data, size}, out);
}
