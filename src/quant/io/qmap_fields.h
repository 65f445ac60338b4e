/* SPDX-License-Identifier: Apache-2.0 */
/* State of reading a qmap, and checked access to the fields of a JSON object. */
#ifndef OCT_QUANT_IO_QMAP_FIELDS_H
#define OCT_QUANT_IO_QMAP_FIELDS_H

#include <jansson.h>

#include "quant/io/qmap_words.h"

typedef struct oct_qmap_in {
    oct_ctx *ctx;
    const oct_graph *g;
    oct_map values, nodes; /* by name */
    oct_qmap *m;
    oct_arena *scratch; /* emptied after each object */
    const char *list;   /* "points", for errors; NULL: outside of lists */
    int64_t index;
    bool has_version, has_points;
} oct_qmap_in;

/* Sets the error "points[3]: ..." */
#define OCT_QMAP_BAD(q, ...) oct_qmap_bad_at(q, oct_fail((q)->ctx, OCT_ERR_FORMAT, __VA_ARGS__))

oct_status oct_qmap_bad_at(const oct_qmap_in *q, oct_status st);

/* It is an object whose keys are all among words[], which ends with NULL. */
oct_status oct_qmap_check_keys(const oct_qmap_in *q, json_t *o, const char *const *words);

/* NULL if it is not there and need not be. The copy is in the arena. */
oct_status oct_qmap_get_text(const oct_qmap_in *q, json_t *o, const char *key, bool needed,
                             oct_arena *a, const char **out);
oct_status oct_qmap_get_int(const oct_qmap_in *q, json_t *o, const char *key, int64_t low,
                            int64_t high, int64_t *out);
oct_status oct_qmap_get_bool(const oct_qmap_in *q, json_t *o, const char *key, bool *out);

/* One of the words, which end with NULL; *out is its index. */
oct_status oct_qmap_get_word(const oct_qmap_in *q, json_t *o, const char *key,
                             const char *const *words, int *out);

oct_status oct_qmap_to_float(const oct_qmap_in *q, const char *key, json_t *v, float *out);

/* An array of at least one number, in the scratch memory. */
oct_status oct_qmap_get_floats(const oct_qmap_in *q, json_t *o, const char *key, float **out,
                               int64_t *n);

#endif
