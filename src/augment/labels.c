/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of a dataset, checked before the training starts rather than when they are met. */
#include "augment/labels.h"

#include <string.h>

#include "data/dataset.h"

/* The network's class of a category; -1: none. */
static int32_t class_of(const oct_train_labels *l, int32_t category)
{
    if (category < 0) return -1;
    if (!l->class_map) return category;
    return category < l->n_class_map ? l->class_map[category] : -1;
}

bool oct_train_box_of(const oct_train_labels *l, const oct_label *from, oct_train_box *out)
{
    const int32_t k = l->none ? -1 : class_of(l, from->category);

    if (k < 0 || from->is_crowd || !(from->width > 0) || !(from->height > 0)) return false;
    *out = (oct_train_box){
        from->x, from->y, from->x + from->width, from->y + from->height, from->width * from->height,
        k};
    return true;
}

int32_t oct_train_class_of(const oct_train_labels *l, int64_t index)
{
    return class_of(l, oct_dataset_class(l->d, index));
}

/* --- checks --- */

static oct_status unknown(const oct_train_labels *l, int64_t i, int32_t category)
{
    const char *name = oct_dataset_category_name(l->d, category);

    return oct_fail(l->ctx, OCT_ERR_ARG,
                    "%s: category %d (%s) is none of the network's classes; leave such labels out, "
                    "or give the names of the network's classes",
                    oct_dataset_path(l->d, i), (int)category, name ? name : "without a name");
}

static oct_status check_class(oct_train_labels *l, int64_t i, int32_t category)
{
    const int32_t k = class_of(l, category);

    if (k < 0 && !l->skip_unknown) return unknown(l, i, category);
    l->n_unknown += k < 0;
    if (l->n_classes && k >= l->n_classes)
        return oct_fail(l->ctx, OCT_ERR_ARG, "%s: class %d, but the network has only %d",
                        oct_dataset_path(l->d, i), (int)k, (int)l->n_classes);
    return OCT_OK;
}

static oct_status check_boxes(oct_train_labels *l, int64_t i)
{
    int32_t n = 0, n_used = 0;
    const oct_label *labels = oct_dataset_labels(l->d, i, &n);

    for (int32_t k = 0; k < n; k++) {
        oct_train_box box;
        const oct_status st = oct_label_check(l->ctx, &labels[k]);

        if (st) return oct_fail_at(l->ctx, st, oct_dataset_path(l->d, i));
        if (labels[k].is_crowd) {
            l->n_crowds++;
            continue;
        }
        if (!(labels[k].width > 0) || !(labels[k].height > 0)) {
            l->n_empty++;
            continue;
        }
        OCT_TRY(check_class(l, i, labels[k].category));
        n_used += oct_train_box_of(l, &labels[k], &box);
    }
    l->most_boxes = OCT_MAX(l->most_boxes, n_used);
    l->usable[l->n_usable++] = i;
    return OCT_OK;
}

static oct_status check_picture(oct_train_labels *l, int64_t i)
{
    const int32_t category = oct_dataset_class(l->d, i);

    if (category < 0)
        return oct_fail(l->ctx, OCT_ERR_ARG,
                        "%s: no class is known of it; a classifier is trained on a list 'name "
                        "class' or on folders named after classes",
                        oct_dataset_path(l->d, i));
    OCT_TRY(check_class(l, i, category));
    if (class_of(l, category) >= 0) l->usable[l->n_usable++] = i;
    return OCT_OK;
}

static oct_status check_kind(const oct_train_labels *l)
{
    if (oct_dataset_is_tensors(l->d))
        return oct_fail(l->ctx, OCT_ERR_ARG,
                        "a dataset of tensors (%s) has no labels to train with",
                        oct_dataset_kind(l->d));
    if (oct_dataset_size(l->d) < 1)
        return oct_fail(l->ctx, OCT_ERR_ARG, "the dataset has no pictures to train on");
    if (!l->classes && !l->none && !l->d->is_boxes)
        return oct_fail(l->ctx, OCT_ERR_ARG,
                        "boxes are missing: labels are COCO .json, a folder of VOC .xml or YOLO "
                        ".txt, or a data.yaml; this is a dataset of kind '%s'",
                        oct_dataset_kind(l->d));
    return OCT_OK;
}

static oct_status copy_map(oct_train_labels *l, const oct_batches_options *o)
{
    l->n_class_map = o->n_class_map ? o->n_class_map : oct_dataset_n_categories(l->d);
    if (!o->class_map) return OCT_OK;
    if (l->n_class_map < 0)
        return oct_fail(l->ctx, OCT_ERR_ARG, "batches: a class map of %d entries",
                        (int)l->n_class_map);
    l->class_map = oct_calloc(l->ctx, (size_t)l->n_class_map + 1, sizeof(*l->class_map));
    if (!l->class_map) return OCT_ERR_MEMORY;
    memcpy(l->class_map, o->class_map, (size_t)l->n_class_map * sizeof(*l->class_map));
    return OCT_OK;
}

/* Every picture is good without labels. */
static oct_status take_all(oct_train_labels *l, int64_t n)
{
    for (l->n_usable = 0; l->n_usable < n; l->n_usable++)
        l->usable[l->n_usable] = l->n_usable;
    l->most_boxes = 1; /* a row that is never used */
    return OCT_OK;
}

static oct_status read_all(oct_train_labels *l, const oct_batches_options *o)
{
    const int64_t n = oct_dataset_size(l->d);

    OCT_TRY(check_kind(l));
    OCT_TRY(copy_map(l, o));
    if (!(l->usable = oct_calloc(l->ctx, (size_t)n, sizeof(*l->usable)))) return OCT_ERR_MEMORY;
    if (l->none) return take_all(l, n);
    for (int64_t i = 0; i < n; i++)
        OCT_TRY(l->classes ? check_picture(l, i) : check_boxes(l, i));
    if (!l->n_usable || (!l->classes && !l->most_boxes))
        return oct_fail(l->ctx, OCT_ERR_ARG,
                        "none of the %lld pictures has a label of the network's classes",
                        (long long)n);
    return OCT_OK;
}

oct_status oct_train_labels_new(oct_ctx *ctx, const oct_dataset *d, const oct_batches_options *o,
                                oct_train_labels *out)
{
    oct_status st;

    *out = (oct_train_labels){.ctx = ctx,
                              .d = d,
                              .classes = o->classes,
                              .none = o->no_labels,
                              .skip_unknown = o->skip_unknown,
                              .n_classes = o->n_classes};
    if ((st = read_all(out, o))) oct_train_labels_free(out);
    return st;
}

void oct_train_labels_free(oct_train_labels *l)
{
    if (!l->ctx) return;
    oct_free(l->ctx, l->class_map);
    oct_free(l->ctx, l->usable);
    *l = (oct_train_labels){0};
}
