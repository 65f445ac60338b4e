/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of Pascal VOC's XML files, one for each picture; nothing else includes libxml2. Files
 * are in the order of their names, categories are sorted by name. A box is xmin .. xmax, not one
 * pixel more; a point or a line is skipped and counted. "difficult" objects count like crowds:
 * missing them costs nothing. A picture without an XML file is not part of the dataset. Nothing is
 * fetched or expanded: a file with a DTD is refused.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

#include "base/map.h"
#include "data/dataset.h"
#include "data/files.h"

#define MAX_FILE ((size_t)64 << 20)

typedef struct reader {
    oct_dataset *d;
    oct_ctx *ctx;
    const char *images;
    const char *xml;    /* the current file */
    oct_map categories; /* name to its number + 1, until they are sorted */
    oct_labels labels;
} reader;

static const xmlNode *child(const xmlNode *parent, const char *name)
{
    for (const xmlNode *n = parent ? parent->children : NULL; n; n = n->next) {
        if (n->type == XML_ELEMENT_NODE && !strcmp((const char *)n->name, name)) return n;
    }
    return NULL;
}

/* The text directly inside an element, without white space around it; NULL: none, or too long. */
static const char *text_of(const xmlNode *n, char text[256])
{
    const char *s = n && n->children && n->children->type == XML_TEXT_NODE && !n->children->next
                        ? (const char *)n->children->content
                        : NULL;
    size_t len;

    if (!s) return NULL;
    s += strspn(s, " \t\r\n");
    len = strlen(s);
    while (len && strchr(" \t\r\n", s[len - 1]))
        len--;
    if (!len || len >= 256) return NULL;
    memcpy(text, s, len);
    text[len] = '\0';
    return text;
}

static oct_status get_number(oct_ctx *ctx, const xmlNode *parent, const char *name, double *out)
{
    char text[256], *end = NULL;
    const xmlNode *n = child(parent, name);

    if (!n) return oct_fail(ctx, OCT_ERR_FORMAT, "there is no <%s>", name);
    if (!text_of(n, text)) return oct_fail(ctx, OCT_ERR_FORMAT, "<%s> has no number", name);
    *out = strtod(text, &end);
    if (*end || !isfinite(*out))
        return oct_fail(ctx, OCT_ERR_FORMAT, "<%s> is \"%.40s\", not a number", name, text);
    return OCT_OK;
}

static oct_status find_category(reader *r, const char *name, int32_t *out)
{
    const uintptr_t known = (uintptr_t)oct_map_get(&r->categories, name);

    if (!known) {
        const char *copy = oct_arena_strdup(r->d->arena, name);

        if (!copy) return OCT_ERR_MEMORY;
        OCT_TRY(oct_dataset_add_category(r->d, copy, 0));
        OCT_TRY(oct_map_put(&r->categories, copy, (void *)(uintptr_t)r->d->n_categories));
    }
    *out = (int32_t)(known ? known : r->d->n_categories) - 1;
    return OCT_OK;
}

static oct_status read_object(reader *r, const xmlNode *object, double width, double height)
{
    const xmlNode *box = child(object, "bndbox");
    double x0 = 0, y0 = 0, x1 = 0, y1 = 0, difficult = 0;
    oct_label l = {0};
    char name[256];

    if (!text_of(child(object, "name"), name))
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "there is no <name>");
    if (!box) return oct_fail(r->ctx, OCT_ERR_FORMAT, "there is no <bndbox>");
    OCT_TRY(get_number(r->ctx, box, "xmin", &x0));
    OCT_TRY(get_number(r->ctx, box, "ymin", &y0));
    OCT_TRY(get_number(r->ctx, box, "xmax", &x1));
    OCT_TRY(get_number(r->ctx, box, "ymax", &y1));
    if (child(object, "difficult")) OCT_TRY(get_number(r->ctx, object, "difficult", &difficult));
    l = (oct_label){.x = x0, .y = y0, .width = x1 - x0, .height = y1 - y0};
    l.area = l.width * l.height;
    l.is_crowd = difficult != 0;
    OCT_TRY(oct_label_check(r->ctx, &l));
    OCT_TRY(oct_label_check_inside(r->ctx, &l, (int64_t)width, (int64_t)height));
    if (oct_label_is_empty(r->d, &l, r->xml)) return OCT_OK;
    OCT_TRY(find_category(r, name, &l.category));
    return oct_labels_add(r->ctx, &r->labels, &l);
}

static oct_status read_objects(reader *r, const xmlNode *root, const char *file)
{
    const xmlNode *size = child(root, "size");
    double width = 0, height = 0;
    int n = 0;

    if (size) {
        OCT_TRY(get_number(r->ctx, size, "width", &width));
        OCT_TRY(get_number(r->ctx, size, "height", &height));
        if (fabs(width) > 1e9 || fabs(height) > 1e9)
            return oct_fail(r->ctx, OCT_ERR_FORMAT, "a picture of %g x %g", width, height);
    }
    for (const xmlNode *o = root->children; o; o = o->next) {
        oct_status st;
        char *where;

        if (o->type != XML_ELEMENT_NODE || strcmp((const char *)o->name, "object") != 0) continue;
        n++;
        if (!(st = read_object(r, o, width, height))) continue;
        where = oct_arena_printf(r->d->arena, "%s: object %d", file, n);
        if (!where) return OCT_ERR_MEMORY;
        OCT_TRY(oct_dataset_bad(r->d, st, where));
    }
    return OCT_OK;
}

/* By the name inside the file, else by the file's own; files are moved and renamed a lot. */
static oct_status find_picture(reader *r, const xmlNode *root, const char *xml, const char **out)
{
    static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".JPG", ".JPEG",
                                             ".PNG", ".webp", ".bmp", ".tif", ".tiff"};
    const int stem = (int)(strlen(xml) - strlen(".xml"));
    char name[256];
    const char *path;

    if (text_of(child(root, "filename"), name)) {
        if (!(path = oct_dataset_join(r->d, r->images, name))) return OCT_ERR_MEMORY;
        if (!r->images || oct_is_file(path)) {
            *out = path;
            return OCT_OK;
        }
    }
    if (!r->images) return oct_fail(r->ctx, OCT_ERR_FORMAT, "there is no <filename>");
    for (size_t i = 0; i < OCT_COUNT(extensions); i++) {
        path = oct_arena_printf(r->d->arena, "%s/%.*s%s", r->images, stem, xml, extensions[i]);
        if (!path) return OCT_ERR_MEMORY;
        if (oct_is_file(path)) {
            *out = path;
            return OCT_OK;
        }
    }
    return oct_fail(r->ctx, OCT_ERR_IO, "its picture is not in %s", r->images);
}

static oct_status read_document(reader *r, const xmlDoc *doc, const char *file, const char *xml)
{
    const xmlNode *root = xmlDocGetRootElement((xmlDoc *)doc);
    const char *path = NULL;

    if (doc->intSubset || doc->extSubset)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "XML with a DTD is not read");
    if (!root || strcmp((const char *)root->name, "annotation") != 0)
        return oct_fail(r->ctx, OCT_ERR_FORMAT, "there is no <annotation>");
    OCT_TRY(find_picture(r, root, xml, &path));
    r->labels.n = 0;
    OCT_TRY(read_objects(r, root, file));
    OCT_TRY(oct_dataset_add(r->d, path));
    return oct_labels_give(r->d, &r->labels, &r->d->items[r->d->n_items - 1]);
}

static oct_status read_file(reader *r, const char *file, const char *xml)
{
    const int flags = XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING;
    oct_file *f = NULL;
    xmlDoc *doc;
    oct_status st;

    OCT_TRY(oct_file_map(r->ctx, file, &f));
    if (oct_file_size(f) > MAX_FILE) {
        oct_file_unref(f);
        return oct_fail(r->ctx, OCT_ERR_UNSUPPORTED, "%s: larger than 64 MB", file);
    }
    doc = xmlReadMemory((const char *)oct_file_data(f), (int)oct_file_size(f), NULL, NULL, flags);
    if (doc) {
        st = read_document(r, doc, file, xml);
        xmlFreeDoc(doc);
    } else {
        const xmlError *e = xmlGetLastError();
        const char *text = e && e->message ? e->message : "not XML";

        st = oct_fail(r->ctx, OCT_ERR_FORMAT, "line %d: %.*s", e ? e->line : 0,
                      (int)strcspn(text, "\n"), text);
    }
    oct_file_unref(f);
    return st;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const oct_category *)a)->name, ((const oct_category *)b)->name);
}

/* Categories were numbered in order of appearance; labels get the numbers of the sorted order. */
static oct_status sort_categories(oct_dataset *d)
{
    const size_t n = d->n_categories;
    int32_t *place;

    if (!n) return OCT_OK;
    if (!(place = oct_alloc(d->ctx, n * sizeof(*place)))) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        d->categories[i].id = (int64_t)i;
    qsort(d->categories, n, sizeof(*d->categories), by_name);
    for (size_t i = 0; i < n; i++) {
        place[d->categories[i].id] = (int32_t)i;
        d->categories[i].id = (int64_t)i;
    }
    for (size_t i = 0; i < d->n_items; i++) {
        oct_label *labels = (oct_label *)d->items[i].labels; /* of this dataset's arena */

        for (int32_t k = 0; k < d->items[i].n_labels; k++)
            labels[k].category = place[labels[k].category];
    }
    oct_free(d->ctx, place);
    return OCT_OK;
}

oct_status oct_read_voc(oct_dataset *d, const char *images, const char *folder)
{
    reader r = {.d = d, .ctx = d->ctx, .images = images};
    oct_listing l = {0};
    oct_status st = OCT_OK;

    d->kind = "VOC";
    d->numbering = OCT_NUMBERED_BY_NAME;
    d->is_boxes = d->has_names = true;
    OCT_TRY(oct_listing_open(d->ctx, folder, &l));
    oct_map_init(&r.categories, d->ctx);
    for (size_t i = 0; !st && i < l.files.n; i++) {
        const char *xml = l.files.items[i], *file;

        if (!oct_has_extension(xml, ".xml")) continue;
        r.xml = xml;
        file = oct_dataset_join(d, folder, xml);
        st = file ? read_file(&r, file, xml) : OCT_ERR_MEMORY;
        if (st && file) {
            /* Errors that name the object name the file already. */
            const bool named = strstr(oct_ctx_error(d->ctx), file) == oct_ctx_error(d->ctx);

            st = oct_dataset_bad(d, st, named ? NULL : file);
        }
    }
    if (!st) st = sort_categories(d);
    oct_free(d->ctx, r.labels.items);
    oct_map_fini(&r.categories);
    oct_listing_close(&l);
    return st;
}
