/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large JSON files, one element at a time: the outer objects and arrays are parsed in place, and
 * only one element is a tree in memory at any moment. jansson parses the elements.
 */
#ifndef OCT_BASE_JSON_STREAM_H
#define OCT_BASE_JSON_STREAM_H

#include <jansson.h>

#include "base/mem.h"

typedef struct oct_json_stream {
    oct_ctx *ctx;
    const char *begin, *p, *end;
    const char *counted; /* lines are counted up to here: each byte once, whatever goes wrong */
    int64_t line;
} oct_json_stream;

/* `data` is borrowed. Failures name the line; the caller adds the file's name. */
void oct_json_stream_init(oct_json_stream *s, oct_ctx *ctx, const void *data, size_t size);

/* '{', '[', '"', or the first character of another value; '\0' at the end of the file. */
char oct_json_stream_peek(oct_json_stream *s);

/* Steps into the object or array that comes next: `open` is '{' or '['. */
oct_status oct_json_stream_enter(oct_json_stream *s, char open);

/*
 * Inside an object or array that was entered: is there another entry? After it comes
 * oct_json_stream_key() (objects only), then one of value, skip and enter. At the end the object or
 * array is left. `close` is '}' or ']'; *n counts the entries seen, from 0, and is the caller's.
 */
oct_status oct_json_stream_more(oct_json_stream *s, char close, int64_t *n, bool *more);

#define OCT_JSON_KEY_SIZE 64

/* The entry's key; longer ones are cut, escapes are left as they are. */
oct_status oct_json_stream_key(oct_json_stream *s, char key[OCT_JSON_KEY_SIZE]);

/* The entry's key, whole and without escapes, in the arena. */
oct_status oct_json_stream_long_key(oct_json_stream *s, oct_arena *a, const char **key);

/* Skips a value without parsing it. */
oct_status oct_json_stream_skip(oct_json_stream *s);

/*
 * The value as a tree, to be given to json_decref(). If it is broken but its end is known, the
 * stream continues after it and *ends is true: the caller may go on. `ends` may be NULL.
 */
oct_status oct_json_stream_value(oct_json_stream *s, json_t **out, bool *ends);

/* Nothing but white space may follow. */
oct_status oct_json_stream_finish(oct_json_stream *s);

#endif
