/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PPQ's quant_cfg.json: for each node the settings of its inputs and outputs, its platform, and the
 * scales. A "hash" identifies a setting; here it is the number of the point, from 1.
 */
#include "quant/io/ppq.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

/* PPQ's name for a point's state. */
static const char *state_name(const oct_qpoint *p)
{
    static const char *const names[OCT_QSTATE_COUNT] = {
        [OCT_QSTATE_ACTIVE] = "ACTIVATED",
        [OCT_QSTATE_PASSIVE] = "PASSIVE",
        [OCT_QSTATE_DOMINATED] = "OVERLAPPED",
        [OCT_QSTATE_BAKED] = "BAKED",
        [OCT_QSTATE_OFF] = "FP32",
    };

    return p->role == OCT_QROLE_BIAS && p->state == OCT_QSTATE_BAKED ? "PASSIVE_BAKED"
                                                                     : names[p->state];
}

static const char *platform_name(const char *target)
{
    static const char *const names[][2] = {
        {"openvino", "OPENVINO_INT8"},
        {"tensorrt", "TRT_INT8"},
        {"npu-pow2", "FPGA_INT8"},
    };

    for (size_t i = 0; i < OCT_COUNT(names); i++)
        if (strncmp(target, names[i][0], strlen(names[i][0])) == 0) return names[i][1];
    return "INT8";
}

static json_t *policy(const oct_qspec *s)
{
    const bool per_channel = s->axis != OCT_QSPEC_PER_TENSOR;

    return json_pack("{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b}", "PER_TENSOR", !per_channel,
                     "PER_CHANNEL", per_channel, "LINEAR", 1, "FLOATING", 0, "SYMMETRICAL",
                     s->is_symmetric, "ASYMMETRICAL", !s->is_symmetric, "POWER_OF_2", s->is_pow2,
                     "DYNAMIC", 0);
}

static json_t *config(const oct_qmap *m, int32_t k)
{
    const oct_qpoint *p = &m->points[k];
    int32_t low, high;

    oct_qspec_limits(&p->spec, &low, &high);
    return json_pack("{s:i, s:o, s:s, s:I, s:I, s:i, s:i}", "bit_width", p->spec.bits, "policy",
                     policy(&p->spec), "state", state_name(p), "quant_min", (json_int_t)low,
                     "quant_max", (json_int_t)high, "hash", (int)k + 1, "dominator",
                     (int)oct_qmap_root_index(m, k) + 1);
}

/* A number, or a list of them. */
static json_t *numbers(const float *scale, const int32_t *zero, int64_t n)
{
    json_t *list = n > 1 ? json_array() : NULL;

    for (int64_t i = 0; i < n; i++) {
        json_t *x = scale ? json_real((double)scale[i]) : json_integer(zero[i]);

        if (!list) return x;
        if (json_array_append_new(list, x)) {
            json_decref(list);
            return NULL;
        }
    }
    return list ? list : json_null();
}

static json_t *values(const oct_qmap *m)
{
    json_t *all = json_object();

    for (int32_t i = 0; all && i < m->n_points; i++) {
        const oct_qpoint *p = &m->points[i];
        char key[16];

        if (oct_qmap_root_index(m, i) != i || p->state == OCT_QSTATE_OFF || p->n < 1) continue;
        snprintf(key, sizeof(key), "%d", (int)i + 1);
        if (json_object_set_new(all, key,
                                json_pack("{s:o, s:o}", "scale", numbers(p->scale, NULL, p->n),
                                          "zero_point", numbers(NULL, p->zero, p->n)))) {
            json_decref(all);
            all = NULL;
        }
    }
    return all;
}

/* Names are bytes in ONNX files; JSON requires text. A name that is not UTF-8 is left out. */
static bool put(json_t *to, const char *name, json_t *x)
{
    return json_object_set_new(to, name, x) == 0;
}

static json_t *configs_of(const oct_qmap *m, const oct_node *n, bool *is_integer)
{
    json_t *all = json_object();

    *is_integer = false;
    for (int32_t i = 0; all && i < n->n_in + n->n_out; i++) {
        const oct_value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        int32_t k = -1;

        if (v) k = i < n->n_in ? oct_qmap_at(m, n, i) : m->of_value[v->id];
        if (k < 0 || !put(all, v->name, config(m, k))) continue;
        *is_integer = *is_integer || (i < n->n_in && m->points[k].state != OCT_QSTATE_OFF);
    }
    return all;
}

static json_t *whole(const oct_qmap *m)
{
    json_t *configs = json_object(), *platforms = json_object();

    for (const oct_node *n = m->g->first; configs && platforms && n; n = n->next) {
        bool is_integer;
        json_t *own = configs_of(m, n, &is_integer);
        const char *platform =
            is_integer && !m->float_reason[n->id] ? platform_name(m->target->name) : "FP32";

        if (!own || json_object_size(own) == 0) {
            json_decref(own);
            continue;
        }
        if (put(configs, n->name, own)) put(platforms, n->name, json_string(platform));
    }
    return json_pack("{s:s, s:o, s:o, s:o}", "made_by", "octet", "configs", configs, "dispatchings",
                     platforms, "values", values(m));
}

static int write_some(const char *p, size_t size, void *writer)
{
    return oct_writer_put(writer, p, size) ? -1 : 0;
}

oct_status oct_qmap_save_ppq(const oct_qmap *m, const char *path)
{
    json_t *j = whole(m);
    oct_writer *w = NULL;
    oct_status st;

    if (!j) return oct_fail(m->ctx, OCT_ERR_MEMORY, "no memory for '%s'", path);
    if ((st = oct_writer_open(m->ctx, path, &w))) goto done;
    if (json_dump_callback(j, write_some, w, JSON_INDENT(4) | JSON_REAL_PRECISION(9))) {
        oct_writer_abort(w);
        st = OCT_ERR_IO;
        goto done;
    }
    st = oct_writer_commit(w);
done:
    json_decref(j);
    return st;
}
