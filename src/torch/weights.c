/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of an archive: where their storages lie, and strides made dense. */
#include "torch/weights.h"

#include <string.h>

#include "base/json_stream.h"

/* --- tables of weights as JSON: {"config": {name: {path_name, use_pickle, tensor_meta}}} --- */

typedef struct config {
    oct_weights *w;
    oct_archive *a;
    const char *folder; /* "root/data/weights/" */
    oct_map *map;
} config;

static oct_status read_entry(const config *c, const json_t *j, oct_weight *out)
{
    oct_program *p = c->w->p;
    const char *file = json_string_value(json_object_get(j, "path_name")), *path;

    if (!file) return oct_fail(p->ctx, OCT_ERR_FORMAT, "a weight without path_name");
    out->archive = c->a;
    if (json_is_true(json_object_get(j, "use_pickle")) ||
        !json_is_object(json_object_get(j, "tensor_meta"))) {
        out->refused = "is not a plain tensor, but a Python object";
        return OCT_OK;
    }
    if (!(path = oct_arena_printf(p->arena, "%s%s", c->folder, file))) return OCT_ERR_MEMORY;
    out->storage = oct_archive_find(c->a, path);
    if (!out->storage) out->refused = "has no data in the archive";
    return oct_program_meta(p, json_object_get(j, "tensor_meta"), &out->meta, out->strides,
                            &out->offset);
}

static oct_status read_entries(const config *c, oct_json_stream *s)
{
    oct_program *p = c->w->p;
    int64_t n = 0;
    bool more;

    OCT_TRY(oct_json_stream_enter(s, '{'));
    for (;;) {
        oct_weight *weight = oct_arena_alloc(p->arena, sizeof(*weight));
        const char *name;
        json_t *j = NULL;
        oct_status st;

        if (!weight) return OCT_ERR_MEMORY;
        OCT_TRY(oct_json_stream_more(s, '}', &n, &more));
        if (!more) return OCT_OK;
        OCT_TRY(oct_json_stream_long_key(s, p->arena, &name));
        OCT_TRY(oct_json_stream_value(s, &j, NULL));
        st = read_entry(c, j, weight);
        json_decref(j);
        if (st) {
            oct_fail_at(p->ctx, st, name);
            return st;
        }
        OCT_TRY(oct_map_put(c->map, name, weight));
    }
}

static oct_status read_config(const config *c, oct_member *m)
{
    char key[OCT_JSON_KEY_SIZE];
    oct_json_stream s;
    oct_span_of bytes;
    int64_t n = 0;
    bool more;

    OCT_TRY(oct_archive_bytes(c->a, m, &bytes));
    oct_json_stream_init(&s, c->w->ctx, bytes.p, bytes.size);
    OCT_TRY(oct_json_stream_enter(&s, '{'));
    for (;;) {
        OCT_TRY(oct_json_stream_more(&s, '}', &n, &more));
        if (!more) return OCT_OK;
        OCT_TRY(oct_json_stream_key(&s, key));
        if (strcmp(key, "config") == 0)
            OCT_TRY(read_entries(c, &s));
        else
            OCT_TRY(oct_json_stream_skip(&s));
    }
}

/* --- finding them --- */

static oct_member *find_member(oct_weights *w, oct_archive *a, const char *root, const char *fmt,
                               const char *model)
{
    char name[256];
    const char *path;

    snprintf(name, sizeof(name), fmt, model); /* NOLINT: one of the formats below */
    path = oct_arena_printf(w->p->arena, "%s%s", root, name);
    return path ? oct_archive_find(a, path) : NULL;
}

/* The archive of torch.save() inside the archive. */
static oct_status read_nested(oct_weights *w, oct_archive *a, oct_member *m, int at, oct_map *map)
{
    oct_span_of bytes;
    oct_status st;

    if (!m->size) return OCT_OK;
    OCT_TRY(oct_archive_bytes(a, m, &bytes));
    st = oct_archive_open(w->ctx, oct_archive_file(a, m), bytes, &w->nested[at]);
    if (!st) st = oct_pickle_read(w->p, w->nested[at], map);
    if (st) oct_fail_at(w->ctx, st, m->name);
    return st;
}

oct_status oct_weights_open(oct_program *p, oct_archive *a, const char *root, const char *model,
                            oct_weights *out)
{
    static const struct {
        const char *config, *folder, *pickle, *old;
    } kinds[] = {
        {"data/weights/%s_weights_config.json", "data/weights/", "data/weights/%s.pt",
         "serialized_state_dict.pt"},
        {"data/constants/%s_constants_config.json", "data/constants/", "data/constants/%s.pt",
         "serialized_constants.pt"},
    };

    *out = (oct_weights){.ctx = p->ctx, .p = p};
    oct_map_init(&out->parameters, p->ctx);
    oct_map_init(&out->constants, p->ctx);
    for (int i = 0; i < 2; i++) {
        config c = {out, a, NULL, i ? &out->constants : &out->parameters};
        oct_member *m = find_member(out, a, root, kinds[i].config, model);

        if (!(c.folder = oct_arena_printf(p->arena, "%s%s", root, kinds[i].folder)))
            return OCT_ERR_MEMORY;
        if (m) {
            const oct_status st = read_config(&c, m);

            if (st) oct_fail_at(p->ctx, st, m->name);
            OCT_TRY(st);
            continue;
        }
        if (!(m = find_member(out, a, root, kinds[i].pickle, model)))
            m = oct_archive_find(a, kinds[i].old);
        if (m) OCT_TRY(read_nested(out, a, m, i, c.map));
    }
    return OCT_OK;
}

void oct_weights_fini(oct_weights *w)
{
    for (int i = 0; i < 2; i++)
        oct_archive_close(w->nested[i]);
    oct_map_fini(&w->parameters);
    oct_map_fini(&w->constants);
}

/* --- tensors --- */

/* Fails unless all elements of the tensor lie inside its storage. */
static oct_status check_extent(oct_ctx *ctx, const oct_weight *w, size_t width)
{
    const oct_type *t = &w->meta.type;
    int64_t last = w->offset, end;
    char text[OCT_TYPE_TEXT_SIZE];
    bool fits = true;

    for (int i = 0; i < t->rank && fits; i++) {
        int64_t far;

        if (t->dim[i] == 0) return OCT_OK;
        fits = w->strides[i] >= 0 && oct_mul_i64(t->dim[i] - 1, w->strides[i], &far) &&
               oct_add_i64(last, far, &last);
    }
    if (fits && oct_add_i64(last, 1, &end) && oct_mul_i64(end, (int64_t)width, &end) &&
        (uint64_t)end <= w->storage->size)
        return OCT_OK;
    if (!w->storage->size)
        return oct_fail(ctx, OCT_ERR_FORMAT,
                        "has no data: it was exported as a fake tensor; load the weights first");
    return oct_fail(ctx, OCT_ERR_FORMAT,
                    "%s with its strides and offset reaches beyond its %zu bytes",
                    oct_type_text(t, text), w->storage->size);
}

static bool is_dense(const oct_weight *w)
{
    int64_t want = 1;

    for (int i = w->meta.type.rank - 1; i >= 0; i--) {
        if (w->meta.type.dim[i] == 0) return true;
        if (w->meta.type.dim[i] != 1 && w->strides[i] != want) return false;
        want *= w->meta.type.dim[i]; /* check_extent() saw that it does not overflow */
    }
    return true;
}

/* Elements in the order of the shape, whatever the strides; row by row of the last dimension. */
static oct_status gather(oct_ctx *ctx, const oct_weight *w, const uint8_t *src, size_t width,
                         oct_tensor **out)
{
    const oct_type *t = &w->meta.type;
    const int last = t->rank - 1;
    int64_t at[OCT_MAX_RANK] = {0}, n_rows, row;
    uint8_t *dst;

    OCT_TRY(oct_tensor_make(ctx, t, out));
    if (!(n_rows = oct_type_len(t))) return OCT_OK;
    dst = (*out)->data;
    row = last >= 0 ? t->dim[last] : 1;
    for (n_rows /= row; n_rows > 0; n_rows--) {
        int64_t from = w->offset;

        for (int i = 0; i < last; i++)
            from += at[i] * w->strides[i];
        for (int64_t k = 0; k < row; k++, dst += width)
            memcpy(dst, src + (size_t)(from + (last >= 0 ? k * w->strides[last] : 0)) * width,
                   width);
        for (int i = last - 1; i >= 0 && ++at[i] == t->dim[i]; i--)
            at[i] = 0;
    }
    return OCT_OK;
}

static oct_status make_tensor(oct_ctx *ctx, const oct_weight *w, oct_tensor **out)
{
    const oct_type *t = &w->meta.type;
    const size_t width = oct_dtype_size(t->dtype);
    oct_file *file = oct_archive_file(w->archive, w->storage);
    const uint8_t *p;
    oct_span_of bytes;

    if (!width) return oct_fail(ctx, OCT_ERR_UNSUPPORTED, "its element type is not supported");
    if (!oct_type_is_static(t) || oct_type_len(t) < 0)
        return oct_fail(ctx, OCT_ERR_FORMAT, "its size is symbolic or overflows");
    OCT_TRY(check_extent(ctx, w, width));
    OCT_TRY(oct_archive_bytes(w->archive, w->storage, &bytes));
    if (oct_type_len(t) == 0) return oct_tensor_make(ctx, t, out);
    p = bytes.p + (size_t)w->offset * width;
    if (file && is_dense(w) && (uintptr_t)p % OCT_MIN(width, 8) == 0)
        return oct_tensor_from_file(ctx, t, file, (size_t)(p - oct_file_data(file)), out);
    return gather(ctx, w, bytes.p, width, out);
}

oct_status oct_weights_tensor(oct_weights *w, const char *name, bool is_constant, oct_tensor **out)
{
    const oct_weight *weight = oct_map_get(is_constant ? &w->constants : &w->parameters, name);
    oct_status st;

    /* Older files have buffers that are not persistent among the parameters. */
    if (!weight) weight = oct_map_get(is_constant ? &w->parameters : &w->constants, name);
    if (!weight)
        return oct_fail(w->ctx, OCT_ERR_FORMAT, "weight '%.200s' is not in the archive", name);
    if (weight->refused)
        return oct_fail(w->ctx, OCT_ERR_UNSUPPORTED, "weight '%.200s' %s", name, weight->refused);
    if ((st = make_tensor(w->ctx, weight, out))) {
        oct_fail_at(w->ctx, st, name);
        oct_fail_at(w->ctx, st, "weight");
    }
    return st;
}
