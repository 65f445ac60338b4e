/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges for TensorRT: its calibration cache (a line for each tensor, "name: scale", the scale as
 * the eight hexadecimal digits of a float32), or PPQ's JSON {"act_quant_info": {name: range}}.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/str.h"
#include "quant/io/ppq.h"

#define CACHE_HEADER "TRT-8601-EntropyCalibration2\n"

enum { LARGEST_CODE = 127 };

static float larger_end(const oct_qpoint *p)
{
    float most = 0;

    for (int64_t i = 0; i < p->n; i++) {
        float low, high;

        oct_qspec_range(&p->spec, p->scale[i], p->zero[i], &low, &high);
        /* a signed type has one code more below 0, which says nothing of the range */
        if (p->spec.is_symmetric && p->spec.is_signed) low = -high;
        most = OCT_MAX(most, OCT_MAX(-low, high));
    }
    return most;
}

/* The activation point of a value that has a range; NULL: none. */
static const oct_qpoint *ranged(const oct_qmap *m, int32_t i)
{
    const oct_qpoint *root = oct_qmap_root(m, i);

    if (m->points[i].role != OCT_QROLE_ACT || m->points[i].value->data) return NULL;
    /* a range for one consumer alone only where there is none for all */
    if (m->points[i].node && m->of_value[m->points[i].value->id] >= 0) return NULL;
    return m->points[i].state == OCT_QSTATE_OFF || root->n < 1 ? NULL : root;
}

static void put_cache(const oct_qmap *m, oct_str *b)
{
    oct_str_puts(b, CACHE_HEADER);
    for (int32_t i = 0; i < m->n_points; i++) {
        const oct_qpoint *p = ranged(m, i);
        const char *name = m->points[i].value->name;
        float scale;
        uint32_t bits;

        if (!p || strpbrk(name, "\r\n")) continue;
        scale = larger_end(p) / (float)LARGEST_CODE;
        memcpy(&bits, &scale, sizeof(bits));
        oct_str_printf(b, "%s: %08" PRIx32 "\n", name, bits);
    }
}

static void put_json(const oct_qmap *m, oct_str *b)
{
    json_t *ranges = json_object(), *all = json_pack("{s:o}", "act_quant_info", ranges);
    char *text;

    for (int32_t i = 0; all && i < m->n_points; i++) {
        const oct_qpoint *p = ranged(m, i);

        if (p) /* a name that is not UTF-8 is left out */
            (void)json_object_set_new(ranges, m->points[i].value->name,
                                      json_real((double)larger_end(p)));
    }
    text = all ? json_dumps(all, JSON_INDENT(4) | JSON_REAL_PRECISION(9)) : NULL;
    if (text)
        oct_str_printf(b, "%s\n", text);
    else
        b->failed = true;
    free(text);
    json_decref(all);
}

oct_status oct_qmap_save_tensorrt(const oct_qmap *m, const char *path, bool as_json)
{
    oct_writer *w = NULL;
    oct_str b;
    oct_status st;

    oct_str_init(&b, m->ctx);
    if (as_json)
        put_json(m, &b);
    else
        put_cache(m, &b);
    st = b.failed ? OCT_ERR_MEMORY : oct_writer_open(m->ctx, path, &w);
    if (!st && (st = oct_writer_put(w, b.s, b.len)))
        oct_writer_abort(w);
    else if (!st)
        st = oct_writer_commit(w);
    oct_str_fini(&b);
    return st;
}
