/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COCO's annotation files. Pictures and categories are ordered by id, as the COCO tools do; labels
 * of a picture stay in the order of the file. The rules:
 *  - pictures need "id" and "file_name"; ids are any integers and appear once;
 *  - categories need "id" and "name"; ids appear once;
 *  - annotations need "image_id", "category_id" and a "bbox" of four finite numbers whose sides are
 *    not negative; "area" defaults to width * height, "iscrowd" to 0; ids, where given, appear
 * once;
 *  - a box is not clipped (scores must equal those of the COCO tools); one that lies wholly outside
 *    its picture is broken;
 *  - the file may have no annotations, and pictures may have none.
 * Anything broken is an error that names the entry, or is left out and counted.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_stream.h"
#include "data/dataset.h"

/* An id, and the entry of the file that has it. */
typedef struct id_entry {
    int64_t id, entry;
} id_entry;

typedef struct ids {
    id_entry *items;
    size_t n, cap;
} ids;

typedef struct picture {
    const char *path;
    int64_t width, height; /* 0: not given */
} picture;

typedef struct annotation {
    int64_t image_id, category_id;
    int64_t entry; /* in the file */
    bool dropped;  /* it repeats an id */
    oct_label label;
} annotation;

typedef struct reader {
    oct_dataset *d;
    oct_ctx *ctx;
    const char *images;
    oct_json_stream s;
    picture *pictures;
    size_t cap_pictures;
    const char **names; /* of categories */
    size_t cap_names;
    annotation *annotations;
    size_t n_annotations, cap_annotations;
    ids picture_ids, category_ids, annotation_ids;
} reader;

static oct_status add_id(oct_ctx *ctx, ids *list, int64_t id, int64_t entry)
{
    OCT_TRY(oct_grow(ctx, &list->items, &list->cap, list->n + 1, sizeof(*list->items)));
    list->items[list->n++] = (id_entry){id, entry};
    return OCT_OK;
}

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_id(const void *a, const void *b)
{
    return compare(((const id_entry *)a)->id, ((const id_entry *)b)->id);
}

static int by_id_and_entry(const void *a, const void *b)
{
    const int order = by_id(a, b);

    return order ? order : compare(((const id_entry *)a)->entry, ((const id_entry *)b)->entry);
}

static int by_entry(const void *a, const void *b)
{
    return compare(((const annotation *)a)->entry, ((const annotation *)b)->entry);
}

/* Its place in the sorted list; -1: not there. */
static int64_t find_id(const ids *list, int64_t id)
{
    const id_entry key = {id, 0};
    const id_entry *found =
        list->n ? bsearch(&key, list->items, list->n, sizeof(key), by_id) : NULL;

    return found ? found - list->items : -1;
}

/* Sorts; a second entry with the same id is broken: it goes to `dropped` if that is not NULL. */
static oct_status sort_ids(reader *r, ids *list, const char *what, ids *dropped)
{
    size_t n = 0;

    if (list->n) qsort(list->items, list->n, sizeof(*list->items), by_id_and_entry);
    for (size_t i = 0; i < list->n; i++) {
        const id_entry e = list->items[i];

        if (n && list->items[n - 1].id == e.id) {
            const oct_status st = oct_fail(
                r->ctx, OCT_ERR_FORMAT, "%s[%lld]: id %lld is that of %s[%lld] already", what,
                (long long)e.entry, (long long)e.id, what, (long long)list->items[n - 1].entry);

            OCT_TRY(oct_dataset_bad(r->d, st, NULL));
            if (dropped) OCT_TRY(add_id(r->ctx, dropped, e.id, e.entry));
            continue;
        }
        list->items[n++] = e;
    }
    list->n = n;
    return OCT_OK;
}

/* --- fields --- */

static oct_status get_int(oct_ctx *ctx, const json_t *o, const char *key, int64_t *out)
{
    const json_t *v = json_object_get(o, key);

    if (!v) return oct_fail(ctx, OCT_ERR_FORMAT, "there is no \"%s\"", key);
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
        return OCT_OK;
    }
    if (json_is_real(v)) { /* some programs write 7.0 */
        const double x = json_real_value(v);

        if (x == floor(x) && fabs(x) < 0x1p53) {
            *out = (int64_t)x;
            return OCT_OK;
        }
    }
    return oct_fail(ctx, OCT_ERR_FORMAT, "\"%s\" is not an integer", key);
}

static oct_status get_text(oct_ctx *ctx, const json_t *o, const char *key, const char **out)
{
    const json_t *v = json_object_get(o, key);

    if (!v) return oct_fail(ctx, OCT_ERR_FORMAT, "there is no \"%s\"", key);
    *out = json_string_value(v);
    if (*out && **out) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_FORMAT, "\"%s\" is not a text, or empty", key);
}

static oct_status get_box(oct_ctx *ctx, const json_t *o, oct_label *out)
{
    const json_t *box = json_object_get(o, "bbox");
    double v[4];

    if (!box) return oct_fail(ctx, OCT_ERR_FORMAT, "there is no \"bbox\"");
    if (!json_is_array(box) || json_array_size(box) != 4)
        return oct_fail(ctx, OCT_ERR_FORMAT, "\"bbox\" is not an array of 4 numbers");
    for (size_t i = 0; i < 4; i++) {
        const json_t *e = json_array_get(box, i);

        if (!json_is_number(e))
            return oct_fail(ctx, OCT_ERR_FORMAT, "\"bbox\" is not an array of 4 numbers");
        v[i] = json_number_value(e);
    }
    *out = (oct_label){.x = v[0], .y = v[1], .width = v[2], .height = v[3]};
    return oct_label_check(ctx, out);
}

/* --- entries --- */

static oct_status read_picture(reader *r, const json_t *o, int64_t entry)
{
    const char *name = NULL;
    picture p = {0};
    int64_t id = 0;

    OCT_TRY(get_int(r->ctx, o, "id", &id));
    OCT_TRY(get_text(r->ctx, o, "file_name", &name));
    if (json_object_get(o, "width")) OCT_TRY(get_int(r->ctx, o, "width", &p.width));
    if (json_object_get(o, "height")) OCT_TRY(get_int(r->ctx, o, "height", &p.height));
    if (!(p.path = oct_dataset_join(r->d, r->images, name))) return OCT_ERR_MEMORY;
    OCT_TRY(
        oct_grow(r->ctx, &r->pictures, &r->cap_pictures, (size_t)entry + 1, sizeof(*r->pictures)));
    r->pictures[entry] = p;
    return add_id(r->ctx, &r->picture_ids, id, entry);
}

static oct_status read_category(reader *r, const json_t *o, int64_t entry)
{
    const char *name = NULL;
    int64_t id = 0;

    OCT_TRY(get_int(r->ctx, o, "id", &id));
    OCT_TRY(get_text(r->ctx, o, "name", &name));
    if (!(name = oct_arena_strdup(r->d->arena, name))) return OCT_ERR_MEMORY;
    OCT_TRY(oct_grow(r->ctx, &r->names, &r->cap_names, (size_t)entry + 1, sizeof(*r->names)));
    r->names[entry] = name;
    return add_id(r->ctx, &r->category_ids, id, entry);
}

static oct_status read_annotation(reader *r, const json_t *o, int64_t entry)
{
    const json_t *area = json_object_get(o, "area");
    annotation a = {.entry = entry};
    int64_t id, crowd = 0;

    OCT_TRY(get_int(r->ctx, o, "image_id", &a.image_id));
    OCT_TRY(get_int(r->ctx, o, "category_id", &a.category_id));
    OCT_TRY(get_box(r->ctx, o, &a.label));
    if (json_object_get(o, "iscrowd")) OCT_TRY(get_int(r->ctx, o, "iscrowd", &crowd));
    a.label.is_crowd = crowd != 0;
    a.label.area = a.label.width * a.label.height;
    if (area) {
        if (!json_is_number(area))
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "\"area\" is not a number");
        a.label.area = json_number_value(area);
    }
    if (json_object_get(o, "id")) {
        OCT_TRY(get_int(r->ctx, o, "id", &id));
        OCT_TRY(add_id(r->ctx, &r->annotation_ids, id, entry));
    }
    OCT_TRY(oct_grow(r->ctx, &r->annotations, &r->cap_annotations, r->n_annotations + 1,
                     sizeof(*r->annotations)));
    r->annotations[r->n_annotations++] = a;
    return OCT_OK;
}

/* One of the file's three lists. */
typedef struct list {
    const char *key;
    oct_status (*read)(reader *r, const json_t *o, int64_t entry);
} list;

static const list lists[] = {
    {"images", read_picture},
    {"categories", read_category},
    {"annotations", read_annotation},
};

static oct_status read_entry(reader *r, const list *l, int64_t entry)
{
    json_t *o = NULL;
    bool ends = false;
    char where[64];
    oct_status st = oct_json_stream_value(&r->s, &o, &ends);

    if (!st) {
        ends = true;
        st = json_is_object(o) ? l->read(r, o, entry)
                               : oct_fail(r->ctx, OCT_ERR_FORMAT, "not an object");
        json_decref(o);
    }
    if (!st) return OCT_OK;
    snprintf(where, sizeof(where), "%s[%lld]", l->key, (long long)entry);
    return ends ? oct_dataset_bad(r->d, st, where) : oct_fail_at(r->ctx, st, where);
}

static oct_status read_list(reader *r, const list *l)
{
    int64_t n = 0;

    OCT_TRY(oct_json_stream_enter(&r->s, '['));
    for (;;) {
        bool more = false;

        OCT_TRY(oct_json_stream_more(&r->s, ']', &n, &more));
        if (!more) return OCT_OK;
        OCT_TRY(read_entry(r, l, n - 1));
    }
}

static oct_status read_file(reader *r)
{
    bool seen[OCT_COUNT(lists)] = {false};
    int64_t n = 0;

    OCT_TRY(oct_json_stream_enter(&r->s, '{'));
    for (;;) {
        char key[OCT_JSON_KEY_SIZE];
        bool more = false;
        size_t i;

        OCT_TRY(oct_json_stream_more(&r->s, '}', &n, &more));
        if (!more) break;
        OCT_TRY(oct_json_stream_key(&r->s, key));
        for (i = 0; i < OCT_COUNT(lists) && strcmp(key, lists[i].key) != 0; i++)
            ;
        if (i == OCT_COUNT(lists)) {
            OCT_TRY(oct_json_stream_skip(&r->s));
            continue;
        }
        if (seen[i]) return oct_fail(r->ctx, OCT_ERR_FORMAT, "\"%s\" appears twice", key);
        seen[i] = true;
        OCT_TRY(read_list(r, &lists[i]));
    }
    if (!seen[0]) return oct_fail(r->ctx, OCT_ERR_FORMAT, "there is no \"images\"");
    return oct_json_stream_finish(&r->s);
}

/* --- putting together --- */

/* Finds an annotation's picture and category; afterwards image_id is the picture's index. */
static oct_status resolve(reader *r, annotation *a)
{
    const int64_t at = find_id(&r->picture_ids, a->image_id);
    const int64_t category = find_id(&r->category_ids, a->category_id);
    const picture *p;

    if (at < 0)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "image_id %lld is not among the images",
                        (long long)a->image_id);
    if (category < 0)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "category_id %lld is not among the categories",
                        (long long)a->category_id);
    p = &r->pictures[r->picture_ids.items[at].entry];
    OCT_TRY(oct_label_check_inside(r->ctx, &a->label, p->width, p->height));
    a->image_id = at;
    a->label.category = (int32_t)category;
    return OCT_OK;
}

/* Leaves out annotations that are broken in what they refer to. */
static oct_status resolve_all(reader *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n_annotations; i++) {
        annotation a = r->annotations[i];
        char where[64];
        oct_status st;

        if (a.dropped) continue;
        if ((st = resolve(r, &a))) {
            snprintf(where, sizeof(where), "annotations[%lld]", (long long)a.entry);
            OCT_TRY(oct_dataset_bad(r->d, st, where));
            continue;
        }
        r->annotations[n++] = a;
    }
    r->n_annotations = n;
    return OCT_OK;
}

/* Counts, then places: labels of a picture lie together, in the order of the file. */
static oct_status give_labels(reader *r)
{
    oct_item *items = r->d->items;
    oct_label *all = oct_arena_array(r->d->arena, r->n_annotations, sizeof(*all));

    if (!all) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < r->n_annotations; i++)
        items[r->annotations[i].image_id].n_labels++;
    for (size_t i = 0; i < r->d->n_items; i++) {
        items[i].labels = all;
        all += items[i].n_labels;
        items[i].n_labels = 0;
    }
    for (size_t i = 0; i < r->n_annotations; i++) {
        oct_item *item = &items[r->annotations[i].image_id];

        ((oct_label *)item->labels)[item->n_labels++] = r->annotations[i].label;
    }
    return OCT_OK;
}

/* A second annotation of the same id is left out. */
static oct_status drop_repeated(reader *r)
{
    ids dropped = {0};
    oct_status st = sort_ids(r, &r->annotation_ids, "annotations", &dropped);

    for (size_t i = 0; !st && i < dropped.n; i++) {
        const annotation key = {.entry = dropped.items[i].entry};
        annotation *a =
            bsearch(&key, r->annotations, r->n_annotations, sizeof(*r->annotations), by_entry);

        if (a) a->dropped = true;
    }
    oct_free(r->ctx, dropped.items);
    return st;
}

static oct_status assemble(reader *r)
{
    OCT_TRY(sort_ids(r, &r->picture_ids, "images", NULL));
    OCT_TRY(sort_ids(r, &r->category_ids, "categories", NULL));
    OCT_TRY(drop_repeated(r));
    for (size_t i = 0; i < r->picture_ids.n; i++) {
        const id_entry *e = &r->picture_ids.items[i];

        OCT_TRY(oct_dataset_add(r->d, r->pictures[e->entry].path));
        r->d->items[i].id = e->id;
    }
    for (size_t i = 0; i < r->category_ids.n; i++) {
        const id_entry *e = &r->category_ids.items[i];

        OCT_TRY(oct_dataset_add_category(r->d, r->names[e->entry], e->id));
    }
    OCT_TRY(resolve_all(r));
    return give_labels(r);
}

oct_status oct_parse_coco(oct_dataset *d, const char *images, oct_bytes file)
{
    reader r = {.d = d, .ctx = d->ctx, .images = images};
    oct_status st;

    d->kind = "COCO";
    d->has_ids = d->is_boxes = d->has_names = true;
    oct_json_stream_init(&r.s, d->ctx, file.data, file.size);
    st = read_file(&r);
    if (!st) st = assemble(&r);
    oct_free(d->ctx, r.pictures);
    oct_free(d->ctx, r.names);
    oct_free(d->ctx, r.annotations);
    oct_free(d->ctx, r.picture_ids.items);
    oct_free(d->ctx, r.category_ids.items);
    oct_free(d->ctx, r.annotation_ids.items);
    return st;
}

oct_status oct_read_coco(oct_dataset *d, const char *images, const char *path)
{
    oct_file *f = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(d->ctx, path, &f));
    st = oct_parse_coco(d, images, (oct_bytes){oct_file_data(f), oct_file_size(f)});
    oct_file_unref(f);
    return st ? oct_fail_at(d->ctx, st, path) : OCT_OK;
}
