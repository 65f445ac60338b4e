/* SPDX-License-Identifier: Apache-2.0 */
/* JSON and HTML text that cannot break out of the page. */
#include "report/json.h"

#include <math.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"

static void begin(oct_str *out, const char *key)
{
    const char last = out->len ? out->s[out->len - 1] : '[';

    if (last != '[' && last != '{') oct_str_puts(out, ",");
    if (key) oct_str_printf(out, "\"%s\":", key);
}

void oct_json_open(oct_str *out, const char *key, char bracket)
{
    begin(out, key);
    oct_str_put(out, &bracket, 1);
}

void oct_json_close(oct_str *out, char bracket)
{
    oct_str_put(out, &bracket, 1);
}

/* Control characters stay what they are, as escapes; broken bytes become U+FFFD. */
static void put_char(oct_str *out, const char *s, int len)
{
    const unsigned char c = (unsigned char)*s;

    if (c < 0x20 || c == 0x7f || strchr("\"\\<>&'", c))
        oct_str_printf(out, "\\u%04x", c);
    else if (!len)
        oct_str_puts(out, "\\ufffd");
    else
        oct_str_put(out, s, (size_t)len);
}

void oct_json_text(oct_str *out, const char *key, const char *s)
{
    begin(out, key);
    if (!s) {
        oct_str_puts(out, "null");
        return;
    }
    oct_str_puts(out, "\"");
    while (*s) {
        const int len = oct_utf8_len(s);

        put_char(out, s, len);
        s += len ? len : 1;
    }
    oct_str_puts(out, "\"");
}

void oct_json_num(oct_str *out, const char *key, double v)
{
    begin(out, key);
    if (isfinite(v))
        oct_str_printf(out, "%.6g", v);
    else
        oct_str_puts(out, "null");
}

void oct_json_int(oct_str *out, const char *key, int64_t v)
{
    begin(out, key);
    oct_str_printf(out, "%lld", (long long)v);
}

void oct_json_base64(oct_str *out, const char *key, const char *head, const void *data, size_t size)
{
    begin(out, key);
    oct_str_printf(out, "\"%s", head);
    oct_base64_put(out, data, size);
    oct_str_puts(out, "\"");
}

void oct_html_text(oct_str *out, const char *s)
{
    while (*s) {
        const int len = oct_utf8_len(s);

        if (*s == '&')
            oct_str_puts(out, "&amp;");
        else if (*s == '<')
            oct_str_puts(out, "&lt;");
        else if (*s == '>')
            oct_str_puts(out, "&gt;");
        else if (*s == '"')
            oct_str_puts(out, "&quot;");
        else if (len)
            oct_str_put(out, s, (size_t)len);
        else
            oct_str_puts(out, "\xef\xbf\xbd");
        s += len ? len : 1;
    }
}
