/* SPDX-License-Identifier: Apache-2.0 */
/* The report: fills the page's template and writes it. */
#include <octet/report.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "report/data.h"
#include "report/json.h"
#include "report/templates.h"

void oct_report_init_sized(oct_report *r, size_t struct_size)
{
    const oct_report defaults = {.float_bytes = -1,
                                 .int8_bytes = -1,
                                 .float_ms = -1,
                                 .int8_ms = -1,
                                 .float_p10_ms = -1,
                                 .float_p90_ms = -1,
                                 .int8_p10_ms = -1,
                                 .int8_p90_ms = -1,
                                 .cpu_load = -1};

    memset(r, 0, struct_size);
    memcpy(r, &defaults, OCT_MIN(struct_size, sizeof(defaults)));
    r->struct_size = struct_size;
}

/* What a slot of the template holds. */
typedef struct page {
    const oct_report *r;
    oct_str data;
} page;

static void put_slot(oct_str *out, const page *p, const char *name, size_t len)
{
#define IS(word) (len == sizeof(word) - 1 && memcmp(name, word, len) == 0)
    if (IS("title"))
        oct_html_text(out, p->r->title ? p->r->title : "network");
    else if (IS("css-hash"))
        oct_str_puts(out, oct_template_css_hash);
    else if (IS("js-hash"))
        oct_str_puts(out, oct_template_js_hash);
    else if (IS("css"))
        oct_str_put(out, oct_template_css, oct_template_css_size);
    else if (IS("js"))
        oct_str_put(out, oct_template_js, oct_template_js_size);
    else if (IS("data"))
        oct_str_put(out, p->data.s, p->data.len);
#undef IS
}

/* {{name}} is a slot; what is put in is not looked at again. */
static void fill(oct_str *out, const page *p)
{
    const char *at = oct_template_html, *open, *close;

    while ((open = strstr(at, "{{")) && (close = strstr(open, "}}"))) {
        oct_str_put(out, at, (size_t)(open - at));
        put_slot(out, p, open + 2, (size_t)(close - open) - 2);
        at = close + 2;
    }
    oct_str_puts(out, at);
}

static oct_status make_folder(oct_ctx *ctx, const char *dir)
{
    struct stat sb;

    if (mkdir(dir, 0777) == 0 || (stat(dir, &sb) == 0 && S_ISDIR(sb.st_mode))) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_IO, "%s: cannot make this folder: %s", dir, strerror(errno));
}

static oct_status write_page(oct_ctx *ctx, const char *dir, const oct_str *html)
{
    oct_writer *w = NULL;
    oct_str path;
    oct_status st;

    oct_str_init(&path, ctx);
    oct_str_printf(&path, "%s/index.html", dir);
    st = path.failed ? OCT_ERR_MEMORY : oct_writer_open(ctx, path.s, &w);
    oct_str_fini(&path);
    if (st) return st;
    if ((st = oct_writer_put(w, html->s, html->len))) {
        oct_writer_abort(w);
        return st;
    }
    return oct_writer_commit(w);
}

oct_status oct_report_write(oct_ctx *ctx, const oct_report *report, const char *dir)
{
    OCT_ENTER(ctx);
    oct_report r;
    page p = {.r = &r};
    oct_links links;
    oct_str html;
    oct_status st;

    oct_report_init(&r);
    memcpy(&r, report, OCT_MIN(report->struct_size, sizeof(r)));
    OCT_TRY(make_folder(ctx, dir));
    oct_str_init(&html, ctx);
    oct_str_init(&p.data, ctx);
    if ((st = oct_links_init(&links, ctx, &r))) goto done;
    oct_report_data(&r, &links, &p.data);
    st = p.data.failed ? OCT_ERR_MEMORY : OCT_OK;
    if (st) goto done;
    fill(&html, &p);
    st = html.failed ? OCT_ERR_MEMORY : write_page(ctx, dir, &html);
done:
    oct_links_fini(&links);
    oct_str_fini(&p.data);
    oct_str_fini(&html);
    return st;
}
