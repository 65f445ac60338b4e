/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of JSON objects: types and limits are checked, errors say where. */
#include "quant/io/qmap_fields.h"

#include <math.h>
#include <stdio.h>

oct_status oct_qmap_bad_at(const oct_qmap_in *q, oct_status st)
{
    char where[64];

    if (!q->list) return st;
    snprintf(where, sizeof(where), "%s[%lld]", q->list, (long long)q->index);
    return oct_fail_at(q->ctx, st, where);
}

oct_status oct_qmap_check_keys(const oct_qmap_in *q, json_t *o, const char *const *words)
{
    const char *key;
    json_t *v;

    if (!json_is_object(o)) return OCT_QMAP_BAD(q, "is not an object");
    json_object_foreach(o, key, v)
    {
        oct_nearest near = {key, 64, words[0]};

        for (int i = 0; words[i] && near.distance; i++)
            oct_nearest_try(&near, words[i]);
        if (near.distance)
            return OCT_QMAP_BAD(q, "unknown key '%.64s'; did you mean '%s'?", key, near.name);
    }
    return OCT_OK;
}

oct_status oct_qmap_get_text(const oct_qmap_in *q, json_t *o, const char *key, bool needed,
                             oct_arena *a, const char **out)
{
    json_t *v = json_object_get(o, key);

    *out = NULL;
    if (!v && !needed) return OCT_OK;
    if (!json_is_string(v)) return OCT_QMAP_BAD(q, "'%s' is not a string", key);
    *out = oct_arena_strdup(a, json_string_value(v));
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_qmap_get_int(const oct_qmap_in *q, json_t *o, const char *key, int64_t low,
                            int64_t high, int64_t *out)
{
    json_t *v = json_object_get(o, key);

    if (!json_is_integer(v)) return OCT_QMAP_BAD(q, "'%s' is not an integer", key);
    *out = json_integer_value(v);
    if (*out < low || *out > high)
        return OCT_QMAP_BAD(q, "'%s' is %lld: %lld to %lld are possible", key, (long long)*out,
                            (long long)low, (long long)high);
    return OCT_OK;
}

oct_status oct_qmap_get_bool(const oct_qmap_in *q, json_t *o, const char *key, bool *out)
{
    json_t *v = json_object_get(o, key);

    if (!json_is_boolean(v)) return OCT_QMAP_BAD(q, "'%s' is not true or false", key);
    *out = json_is_true(v);
    return OCT_OK;
}

oct_status oct_qmap_get_word(const oct_qmap_in *q, json_t *o, const char *key,
                             const char *const *words, int *out)
{
    json_t *v = json_object_get(o, key);
    oct_nearest near = {json_string_value(v), 64, words[0]};

    if (!json_is_string(v)) return OCT_QMAP_BAD(q, "'%s' is not a string", key);
    for (int i = 0; words[i]; i++)
        if (oct_nearest_try(&near, words[i])) *out = i;
    if (near.distance)
        return OCT_QMAP_BAD(q, "'%s' is '%.64s'; did you mean '%s'?", key, near.want, near.name);
    return OCT_OK;
}

oct_status oct_qmap_to_float(const oct_qmap_in *q, const char *key, json_t *v, float *out)
{
    const double x = json_is_number(v) ? json_number_value(v) : NAN;

    /* Nine digits of the largest float are slightly above it: what rounds to it is accepted. */
    if (!(fabs(x) < 0x1.ffffffp127)) return OCT_QMAP_BAD(q, "'%s' holds what is not a float", key);
    *out = (float)x;
    return OCT_OK;
}

oct_status oct_qmap_get_floats(const oct_qmap_in *q, json_t *o, const char *key, float **out,
                               int64_t *n)
{
    json_t *a = json_object_get(o, key);
    const size_t len = json_array_size(a); /* 0 if it is none */

    if (!len) return OCT_QMAP_BAD(q, "'%s' is not a list of numbers", key);
    if (!(*out = oct_arena_array(q->scratch, len, sizeof(**out)))) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < len; i++)
        OCT_TRY(oct_qmap_to_float(q, key, json_array_get(a, i), &(*out)[i]));
    *n = (int64_t)len;
    return OCT_OK;
}
