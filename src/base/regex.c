/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns, through PCRE2 with its compiler to machine code. */
#include "base/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"

/* Patterns come from users and recipes: one that explodes must end. */
#define MATCH_LIMIT 1000000

struct oct_regex {
    oct_ctx *ctx;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
};

oct_status oct_regex_new(oct_ctx *ctx, const char *pattern, bool anchored, oct_regex **out)
{
    oct_regex *re = oct_calloc(ctx, 1, sizeof(*re));
    PCRE2_UCHAR why[120] = "";
    PCRE2_SIZE at = 0;
    int error = 0;

    if (!re) return OCT_ERR_MEMORY;
    re->ctx = ctx;
    re->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                             PCRE2_UTF | (anchored ? PCRE2_ANCHORED : 0), &error, &at, NULL);
    if (!re->code) {
        oct_free(ctx, re);
        pcre2_get_error_message(error, why, sizeof(why));
        return oct_fail(ctx, OCT_ERR_ARG, "pattern '%s', character %zu: %s", pattern, (size_t)at,
                        (const char *)why);
    }
    pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE); /* without it, matching is only slower */
    re->data = pcre2_match_data_create_from_pattern(re->code, NULL);
    re->limits = pcre2_match_context_create(NULL);
    if (!re->data || !re->limits) {
        oct_regex_free(re);
        return oct_fail(ctx, OCT_ERR_MEMORY, "out of memory");
    }
    pcre2_set_match_limit(re->limits, MATCH_LIMIT);
    *out = re;
    return OCT_OK;
}

bool oct_regex_matches(oct_regex *re, const char *text)
{
    return pcre2_match(re->code, (PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, 0, re->data,
                       re->limits) >= 0;
}

void oct_regex_free(oct_regex *re)
{
    if (!re) return;
    pcre2_match_context_free(re->limits);
    pcre2_match_data_free(re->data);
    pcre2_code_free(re->code);
    oct_free(re->ctx, re);
}
