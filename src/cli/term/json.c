/* SPDX-License-Identifier: Apache-2.0 */
/* JSON through jansson. */
#include "cli/term/json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/term/table.h"

#define FLAGS (JSON_REAL_PRECISION(12))

static json_t *checked(json_t *j)
{
    if (j) return j;
    (void)fputs("octet: out of memory\n", stderr);
    exit(1);
}

cli_json *cli_json_object(void)
{
    return checked(json_object());
}

cli_json *cli_json_array(void)
{
    return checked(json_array());
}

void cli_json_free(cli_json *j)
{
    json_decref(j);
}

void cli_json_add(cli_json *to, const char *key, cli_json *child)
{
    const int failed =
        key ? json_object_set_new_nocheck(to, key, child) : json_array_append_new(to, child);

    if (failed) (void)checked(NULL);
}

void cli_json_str(cli_json *to, const char *key, const char *v)
{
    json_t *s = v ? json_string(v) : json_null();

    if (!s) { /* names in a model need not be UTF-8 */
        char *clean = cli_format("%s", v);

        cli_text_clean(clean);
        s = json_string(clean);
        free(clean);
    }
    cli_json_add(to, key, checked(s));
}

void cli_json_int(cli_json *to, const char *key, int64_t v)
{
    cli_json_add(to, key, checked(json_integer(v)));
}

void cli_json_num(cli_json *to, const char *key, double v)
{
    cli_json_add(to, key, checked(isfinite(v) ? json_real(v) : json_null()));
}

void cli_json_bool(cli_json *to, const char *key, bool v)
{
    cli_json_add(to, key, json_boolean(v));
}

void cli_json_null(cli_json *to, const char *key)
{
    cli_json_add(to, key, json_null());
}

void cli_json_round(cli_json *to, const char *key, double v, int digits)
{
    const double scale = pow(10, digits);

    cli_json_num(to, key, round(v * scale) / scale);
}

oct_status cli_json_print(cli *c, const cli_json *j)
{
    if (json_dumpf(j, stdout, FLAGS | JSON_INDENT(2)) || fputc('\n', stdout) == EOF)
        return cli_fail(c, OCT_ERR_IO, "cannot write the result: %s", strerror(errno));
    return OCT_OK;
}

oct_status cli_json_line(cli *c, const cli_json *j)
{
    if (json_dumpf(j, stdout, FLAGS | JSON_COMPACT) || fputc('\n', stdout) == EOF || fflush(stdout))
        return cli_fail(c, OCT_ERR_IO, "cannot write the result: %s", strerror(errno));
    return OCT_OK;
}

oct_status cli_json_save(cli *c, const cli_json *j, const char *path)
{
    char *text = json_dumps(j, FLAGS | JSON_COMPACT);
    oct_status st;

    if (!text) (void)checked(NULL);
    c->model = NULL; /* errors here are about the file */
    cli_hold_interrupts();
    st = oct_write_file(c->ctx, path, text, strlen(text));
    cli_release_interrupts();
    free(text);
    return st;
}
