/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns people know from Python and Perl; the only place that sees PCRE2. */
#ifndef OCT_BASE_REGEX_H
#define OCT_BASE_REGEX_H

#include "base/status.h"

typedef struct oct_regex oct_regex;

/* anchored: as Python's re.match, else as re.search. A bad pattern: the error says where. */
oct_status oct_regex_new(oct_ctx *ctx, const char *pattern, bool anchored, oct_regex **out);
bool oct_regex_matches(oct_regex *re, const char *text); /* not from several threads at once */
void oct_regex_free(oct_regex *re);                      /* accepts NULL */

#endif
