/* SPDX-License-Identifier: Apache-2.0 */
/* The page's templates, made from the files beside this one while building. */
#ifndef OCT_REPORT_TEMPLATES_H
#define OCT_REPORT_TEMPLATES_H

#include <stddef.h>

/* Terminated; without the terminator in the size. The hashes are words of a content policy. */
extern const size_t oct_template_html_size, oct_template_css_size, oct_template_js_size;
extern const char oct_template_html[], oct_template_css[], oct_template_js[];
extern const char oct_template_html_hash[], oct_template_css_hash[], oct_template_js_hash[];

#endif
