/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns through PCRE2. */
#include "cli/regex.h"

#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct cli_regex {
    pcre2_code *code;
    pcre2_match_data *match;
};

oct_status cli_regex_new(cli *c, const char *option, const char *pattern, cli_regex **out)
{
    cli_regex *re = cli_alloc(1, sizeof(*re));
    PCRE2_SIZE at = 0;
    PCRE2_UCHAR why[160];
    int error = 0;

    re->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                             PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &error, &at, NULL);
    if (re->code) re->match = pcre2_match_data_create_from_pattern(re->code, NULL);
    if (!re->match) {
        (void)pcre2_get_error_message(error, why, sizeof(why));
        cli_regex_free(re);
        return cli_fail(c, OCT_ERR_ARG,
                        "option --%s: '%s' is no valid pattern: %s at character %zu", option,
                        pattern, (const char *)why, (size_t)at + 1);
    }
    (void)pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE); /* only speed: may be missing */
    *out = re;
    return OCT_OK;
}

void cli_regex_free(cli_regex *re)
{
    if (!re) return;
    pcre2_match_data_free(re->match);
    pcre2_code_free(re->code);
    free(re);
}

bool cli_regex_match(const cli_regex *re, const char *text)
{
    return pcre2_match(re->code, (PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, 0, re->match, NULL) >=
           0;
}
