/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the writer that see the protobuf library. */
#ifndef OCT_ONNX_ENCODE_H
#define OCT_ONNX_ENCODE_H

#include <pb_encode.h>

#include "onnx.pb.h"
#include "onnx/write.h"

/* Encodes one field; arg is what oct_field() was given. */
typedef bool (*oct_encode_fn)(pb_ostream_t *s, const pb_field_t *f, void *const *arg);

static inline pb_callback_t oct_field(oct_encode_fn fn, const void *arg)
{
    pb_callback_t cb = {0};

    cb.funcs.encode = fn;
    cb.arg = (void *)(uintptr_t)arg;
    return cb;
}

/* A string field from a char pointer; left out if it is NULL or empty. */
pb_callback_t oct_text_field(const char *text);

/* One length-delimited entry of a field, empty or not. */
bool oct_encode_bytes(pb_ostream_t *s, const pb_field_t *f, const void *p, size_t size);
bool oct_encode_message(pb_ostream_t *s, const pb_field_t *f, const pb_msgdesc_t *desc,
                        const void *msg);

/* Messages as entries of a field. */
bool oct_encode_graph(pb_ostream_t *s, const pb_field_t *f, oct_encoder *e, const oct_graph *g);
bool oct_encode_attr(pb_ostream_t *s, const pb_field_t *f, oct_encoder *e, const char *name,
                     const oct_attr *a);
bool oct_encode_tensor(pb_ostream_t *s, const pb_field_t *f, const oct_tensor *t, const char *name,
                       const char *doc);
bool oct_encode_initializer(pb_ostream_t *s, const pb_field_t *f, oct_encoder *e,
                            const oct_value *v);
bool oct_encode_prop(pb_ostream_t *s, const pb_field_t *f, const char *key, const char *value);

#endif
