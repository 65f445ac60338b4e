/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which category of a dataset each class of a network is.
 *
 *   labels        the network's classes
 *   YOLO          by number: the labels' numbers are the network's own
 *   COCO, VOC     by name, where names are known (given, or the file's metadata)
 *                 by the names of COCO's 80 classes, if it has 80 and the dataset knows no others
 *   COCO          by the order of ids, if there are as many
 *   VOC           not at all: the order of its names means nothing
 */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "data/dataset.h"
#include "detect/detector.h"
#include "eval/classes.h"

static const char labels_help[] =
    "give --labels FILE with the network's classes in order: a name a line, or a data.yaml";

/* --- names --- */

/* Equal except for case, blanks, "_" and "-". */
static bool is_alike(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strspn(a, " _-");
        b += strspn(b, " _-");
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) return false;
        if (!*a) return true;
    }
}

/* The category of this name, or nearly so; -1: none. */
static int32_t find_category(const oct_dataset *d, const char *name)
{
    const int32_t n = oct_dataset_n_categories(d);

    for (int32_t i = 0; name && i < n; i++)
        if (strcmp(oct_dataset_category_name(d, i), name) == 0) return i;
    for (int32_t i = 0; name && i < n; i++)
        if (is_alike(oct_dataset_category_name(d, i), name)) return i;
    return -1;
}

/* Are the dataset's categories all of COCO's 80? Then names say which is which. */
static bool is_coco(const oct_dataset *d)
{
    const int32_t n = oct_dataset_n_categories(d);
    int32_t known = 0;

    for (int32_t i = 0; oct_coco_name(i); i++)
        known += find_category(d, oct_coco_name(i)) >= 0;
    return n > 0 && known == n;
}

/* --- errors --- */

/* "a, b, c and 7 more" */
static void put_names(oct_str *s, const oct_detector *net, const oct_dataset *d)
{
    enum { MOST = 6 };
    const int32_t n = net ? oct_detector_n_classes(net) : oct_dataset_n_categories(d);

    for (int32_t i = 0; i < n && i < MOST; i++) {
        const char *name = net ? oct_detector_class_name(net, i) : oct_dataset_category_name(d, i);

        oct_str_printf(s, "%s%.40s", i ? ", " : "", name ? name : "?");
    }
    if (n > MOST) oct_str_printf(s, " and %d more", (int)(n - MOST));
}

static oct_status no_boxes(oct_ctx *ctx, const oct_dataset *d)
{
    if (strcmp(oct_dataset_kind(d), "list") == 0 ||
        strcmp(oct_dataset_kind(d), "class folders") == 0)
        return oct_fail(
            ctx, OCT_ERR_ARG,
            "the labels are %s, on which classifiers are scored; a detector needs boxes: "
            "--annotations with COCO .json, a folder of VOC .xml or YOLO .txt, or a "
            "data.yaml",
            strcmp(oct_dataset_kind(d), "list") ? "folders named after classes"
                                                : "a list of pictures");
    return oct_fail(ctx, OCT_ERR_ARG,
                    "labels are missing: give --annotations FILE|DIR (COCO .json, a folder of VOC "
                    ".xml or YOLO .txt, or a data.yaml)");
}

/* Nothing says which class is which category. */
static oct_status cannot_tell(oct_ctx *ctx, const oct_detector *net, const oct_dataset *d)
{
    oct_str s;
    oct_status st;

    oct_str_init(&s, ctx);
    put_names(&s, NULL, d);
    st = oct_fail(ctx, OCT_ERR_ARG,
                  "which of the network's %d classes is which of the dataset's %d categories (%s) "
                  "cannot be told: the network has no names; %s",
                  (int)oct_detector_n_classes(net), (int)oct_dataset_n_categories(d),
                  s.s ? s.s : "", labels_help);
    oct_str_fini(&s);
    return st;
}

static oct_status none_alike(oct_ctx *ctx, const oct_detector *net, const oct_dataset *d)
{
    oct_str a, b;
    oct_status st;

    oct_str_init(&a, ctx);
    oct_str_init(&b, ctx);
    put_names(&a, net, d);
    put_names(&b, NULL, d);
    st = oct_fail(
        ctx, OCT_ERR_ARG,
        "none of the network's classes (%s; from %s) is a category of the dataset (%s); %s",
        a.s ? a.s : "", oct_detector_names_from(net), b.s ? b.s : "", labels_help);
    oct_str_fini(&a);
    oct_str_fini(&b);
    return st;
}

/* --- the ways --- */

static oct_status make(oct_ctx *ctx, int32_t n, const char *how, oct_class_map **out)
{
    oct_class_map *m = oct_calloc(ctx, 1, sizeof(*m));

    if (!m) return OCT_ERR_MEMORY;
    m->ctx = ctx;
    m->how = how;
    m->n = n;
    m->is_clear = true;
    if (!(m->category = oct_calloc(ctx, (size_t)n + 1, sizeof(*m->category)))) {
        oct_free(ctx, m);
        return OCT_ERR_MEMORY;
    }
    *out = m;
    return OCT_OK;
}

/* Every category has a class, and that has its very name. */
static bool all_agree(const oct_class_map *m, const oct_detector *net, const oct_dataset *d)
{
    int32_t n_same = 0;

    for (int32_t i = 0; i < m->n; i++) {
        const char *name = oct_detector_class_name(net, i);

        n_same += m->category[i] >= 0 && name &&
                  strcmp(name, oct_dataset_category_name(d, m->category[i])) == 0;
    }
    return n_same == oct_dataset_n_categories(d);
}

static oct_status by_name(oct_ctx *ctx, const oct_detector *net, const oct_dataset *d,
                          oct_class_map **out)
{
    const bool coco = strcmp(oct_detector_names_from(net), "COCO") == 0;
    const int32_t n = oct_detector_n_classes(net) ? oct_detector_n_classes(net) : 80;
    int32_t n_found = 0;

    OCT_TRY(make(ctx, n, coco ? "by the names of COCO's 80 classes" : "by name", out));
    for (int32_t i = 0; i < n; i++) {
        (*out)->category[i] = find_category(d, oct_detector_class_name(net, i));
        n_found += (*out)->category[i] >= 0;
    }
    (*out)->is_clear = all_agree(*out, net, d);
    return n_found ? OCT_OK : none_alike(ctx, net, d);
}

static oct_status by_number(oct_ctx *ctx, const oct_detector *net, const oct_dataset *d,
                            const char *how, oct_class_map **out)
{
    const int32_t n_have = oct_dataset_n_categories(d);
    const int32_t n = oct_detector_n_classes(net) ? oct_detector_n_classes(net) : n_have;

    OCT_TRY(make(ctx, n, how, out));
    for (int32_t i = 0; i < n; i++)
        (*out)->category[i] = i < n_have ? i : -1;
    return OCT_OK;
}

/* YOLO: numbers decide; whether names agree is only reported. */
static oct_status by_class(oct_ctx *ctx, const oct_detector *net, const oct_dataset *d,
                           oct_class_map **out)
{
    const int32_t n = oct_detector_n_classes(net);

    if (n && d->top_class >= n)
        return oct_fail(ctx, OCT_ERR_FORMAT, "%s: class %d, but the network's classes are 0 to %d",
                        d->top_where, (int)d->top_class, (int)n - 1);
    OCT_TRY(by_number(ctx, net, d, "by number, as YOLO's labels have it", out));
    for (int32_t i = 0; i < (*out)->n && d->has_names && oct_detector_names_from(net); i++) {
        const char *name = oct_detector_class_name(net, i);

        if (i < oct_dataset_n_categories(d) && name &&
            !is_alike(name, oct_dataset_category_name(d, i)))
            (*out)->is_clear = false;
    }
    return OCT_OK;
}

static oct_status by_order(oct_ctx *ctx, const oct_detector *net, const oct_dataset *d,
                           oct_class_map **out)
{
    const int32_t n = oct_detector_n_classes(net), n_have = oct_dataset_n_categories(d);
    const bool only_one = n == 1 && n_have == 1;

    if (!only_one && (d->numbering == OCT_NUMBERED_BY_NAME || (n && n != n_have)))
        return cannot_tell(ctx, net, d);
    OCT_TRY(by_number(ctx, net, d, only_one ? "as there is one each" : "by the order of ids", out));
    (*out)->is_clear = false;
    return OCT_OK;
}

oct_status oct_class_map_new(const oct_detector *net, const oct_dataset *d, oct_class_map **out)
{
    OCT_ENTER(oct_detector_ctx(net));
    oct_ctx *ctx = oct_detector_ctx(net);
    const char *from = oct_detector_names_from(net);
    const bool has_own = from && strcmp(from, "COCO") != 0;
    oct_class_map *m = NULL;
    oct_status st;

    if (!d->is_boxes) return no_boxes(ctx, d);
    if (d->numbering == OCT_NUMBERED_BY_CLASS)
        st = by_class(ctx, net, d, &m);
    else if (has_own || (from && is_coco(d)))
        st = by_name(ctx, net, d, &m);
    else
        st = by_order(ctx, net, d, &m);
    if (st)
        oct_class_map_free(m);
    else
        *out = m;
    return st;
}

void oct_class_map_free(oct_class_map *m)
{
    if (!m) return;
    oct_free(m->ctx, m->category);
    oct_free(m->ctx, m);
}

const char *oct_class_map_how(const oct_class_map *m)
{
    return m->how;
}

int32_t oct_class_map_size(const oct_class_map *m)
{
    return m->n;
}

int32_t oct_class_map_category(const oct_class_map *m, int32_t k)
{
    return k >= 0 && k < m->n ? m->category[k] : -1;
}

int32_t oct_class_map_is_clear(const oct_class_map *m)
{
    return m->is_clear;
}
