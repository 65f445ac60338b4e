/* SPDX-License-Identifier: Apache-2.0 */
/* The class names of a detector. */
#include <string.h>

#include "detect/detector.h"
#include "detect/family.h"

enum { N_COCO = 80 };

/* Without names of its own, a detector of 80 classes (or of an unknown number) has COCO's. */
static bool is_like_coco(const oct_detector *d)
{
    const int32_t n = d->reading.n_classes;

    return !d->names && !d->family->is_classifier && (n == 0 || n == N_COCO);
}

const char *oct_detector_class_name(const oct_detector *d, int32_t k)
{
    if (is_like_coco(d)) return oct_coco_name(k);
    return oct_class_names_at(d->names, k);
}

const char *oct_detector_names_from(const oct_detector *d)
{
    if (d->names) return d->names_given ? "labels" : "metadata";
    return is_like_coco(d) ? "COCO" : NULL;
}

oct_status oct_detector_set_names(oct_detector *d, const oct_class_names *names)
{
    OCT_ENTER(d->ctx);
    const int32_t n = oct_class_names_size(names), have = d->reading.n_classes;
    oct_class_names *copy = NULL;

    if (have && n != have)
        return oct_fail(d->ctx, OCT_ERR_ARG, "%d names are given, but the network has %d classes",
                        (int)n, (int)have);
    OCT_TRY(oct_class_names_copy(d->ctx, names, &copy));
    oct_class_names_free(d->names);
    d->names = copy;
    d->names_given = true;
    d->reading.n_classes = n;
    return OCT_OK;
}

oct_status oct_detector_take_metadata(oct_detector *d, oct_metadata *m)
{
    const int32_t n = oct_class_names_size(m->names), have = d->reading.n_classes;

    d->preprocess = m->preprocess;
    d->has_preprocess = m->has_preprocess;
    if (!n) return OCT_OK;
    if (have && n != have) {
        oct_log(d->ctx, OCT_LOG_WARN,
                "the file's metadata names %d classes, but the outputs have %d; left aside", (int)n,
                (int)have);
        return OCT_OK;
    }
    d->names = m->names;
    m->names = NULL;
    d->reading.n_classes = n;
    return OCT_OK;
}

oct_status oct_detector_check(const oct_detector *d)
{
    if (!d->reading.cannot) return OCT_OK;
    return oct_fail(d->ctx, OCT_ERR_UNSUPPORTED, "%s", d->reading.cannot);
}

oct_ctx *oct_detector_ctx(const oct_detector *d)
{
    return d->ctx;
}
