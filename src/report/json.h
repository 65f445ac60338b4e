/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON inside HTML: text may hold anything, and nothing in it can end the element it stands in.
 * A comma is put where one is needed. Failing is sticky, as in oct_str. (Jansson leaves '<' as it
 * is, refuses text with broken bytes, and would hold every picture once more.)
 */
#ifndef OCT_REPORT_JSON_H
#define OCT_REPORT_JSON_H

#include "base/str.h"

/* `key` is NULL in an array; keys are names of this program. */
void oct_json_open(oct_str *out, const char *key, char bracket);  /* '{' or '[' */
void oct_json_close(oct_str *out, char bracket);                  /* '}' or ']' */
void oct_json_text(oct_str *out, const char *key, const char *s); /* NULL: null */
void oct_json_num(oct_str *out, const char *key, double v);       /* not finite: null */
void oct_json_int(oct_str *out, const char *key, int64_t v);

/* Bytes as a text in Base64 behind `head`. */
void oct_json_base64(oct_str *out, const char *key, const char *head, const void *data,
                     size_t size);

/* Text for HTML, as content or in a quoted attribute. */
void oct_html_text(oct_str *out, const char *s);

#endif
