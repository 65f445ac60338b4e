/* SPDX-License-Identifier: Apache-2.0 */
/* A recipe as YAML, from the table of fields. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "recipe/recipe.h"

/* Text that needs no quotes in a list or map of one line, and is no number or other word. */
static bool is_bare(const char *s)
{
    static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "y", "n"};

    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_", *s)) return false;
    for (const char *p = s; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/_.-+=0123456789", *p))
            return false;
    for (size_t i = 0; i < OCT_COUNT(words); i++)
        if (!strcasecmp(s, words[i])) return false;
    return true;
}

static bool is_ascii(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f) return false;
    return true;
}

/* The next character; returns its bytes, 0 if it is no UTF-8. */
static int next_code(const char *s, uint32_t *code)
{
    const unsigned char c = (unsigned char)*s;
    const int n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

    *code = n > 1 ? c & (0x7fu >> n) : c;
    for (int i = 1; i < n; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | ((unsigned char)s[i] & 0x3fu);
    }
    return n;
}

/* In double quotes; controls, breaks and marks that YAML changes or refuses as escapes. */
static void put_quoted(oct_str *b, const char *s)
{
    uint32_t code = 0;

    oct_str_puts(b, "\"");
    for (int n; *s; s += n) {
        n = next_code(s, &code);
        if (n == 0) { /* cannot be written: a byte that stands for nothing */
            oct_str_puts(b, "\\ufffd");
            n = 1;
        } else if (code < 0x20 || (code >= 0x7f && code <= 0xa0) || code == 0x2028 ||
                   code == 0x2029 || code == 0xfeff || (code & 0xfffe) == 0xfffe) {
            oct_str_printf(b, "\\U%08x", (unsigned)code);
        } else {
            if (*s == '"' || *s == '\\') oct_str_puts(b, "\\");
            oct_str_put(b, s, (size_t)n);
        }
    }
    oct_str_puts(b, "\"");
}

static void put_text(oct_str *b, const char *s)
{
    if (is_bare(s)) {
        oct_str_puts(b, s);
    } else if (is_ascii(s) && !strchr(s, '\'')) {
        oct_str_printf(b, "'%s'", s);
    } else {
        put_quoted(b, s);
    }
}

static void put_texts(oct_str *b, const char *const *items, int32_t n)
{
    oct_str_puts(b, "[");
    for (int32_t i = 0; i < n; i++) {
        if (i) oct_str_puts(b, ", ");
        put_text(b, items[i]);
    }
    oct_str_puts(b, "]");
}

/* The fewest digits that give the same number back. */
static void put_real(oct_str *b, double v)
{
    char text[40];
    int digits = 6;

    while (snprintf(text, sizeof(text), "%.*g", digits, v) && digits < 17 &&
           strtod(text, NULL) != v)
        digits++;
    oct_str_puts(b, text);
}

/* "size=640x480,mean=.1:.2:.3" as {size: [640, 480], mean: [.1, .2, .3]} */
static void put_preprocess(oct_str *b, const char *words)
{
    const char *between = "{";

    if (!words) {
        oct_str_puts(b, "auto");
        return;
    }
    while (*words) {
        const size_t key = strcspn(words, "="), len = strcspn(words, ",");
        const char split = strncmp(words, "size=", 5) ? ':' : 'x';
        const char *value = words + key + 1;
        const size_t n = len - key - 1;
        const bool is_list = memchr(value, split, n) != NULL;

        oct_str_printf(b, "%s%.*s: %s", between, (int)key, words, is_list ? "[" : "");
        for (size_t i = 0; i < n; i++)
            if (value[i] == split && is_list)
                oct_str_puts(b, ", ");
            else
                oct_str_put(b, &value[i], 1);
        if (is_list) oct_str_puts(b, "]");
        words += len + (words[len] == ',');
        between = ", ";
    }
    oct_str_puts(b, "}");
}

static void put_value(oct_str *b, const oct_field *f, const void *base);

static void put_override(oct_str *b, const oct_quant_override *o)
{
    static const oct_quant_override none;
    const char *between = "{";

    for (const oct_field *f = oct_override_fields; f->path; f++) {
        const bool is_text = f->kind == OCT_FIELD_TEXT || f->kind == OCT_FIELD_CHOICE;
        const size_t size = is_text ? sizeof(char *) : sizeof(int32_t);

        if (!memcmp((const char *)o + f->offset, (const char *)&none + f->offset, size)) continue;
        oct_str_printf(b, "%s%s: ", between, f->path);
        put_value(b, f, o);
        between = ", ";
    }
    oct_str_puts(b, "}");
}

static void put_subgraph(oct_str *b, const oct_subgraph *g)
{
    oct_str_puts(b, "{inputs: ");
    put_texts(b, g->inputs, g->n_inputs);
    oct_str_puts(b, ", outputs: ");
    put_texts(b, g->outputs, g->n_outputs);
    oct_str_puts(b, "}");
}

/* Lists of structs, one in a line. */
static void put_structs(oct_str *b, const oct_field *f, const void *items, int32_t n)
{
    oct_str_puts(b, "[");
    for (int32_t i = 0; i < n; i++) {
        if (i) oct_str_puts(b, ", ");
        if (f->kind == OCT_FIELD_OVERRIDES)
            put_override(b, (const oct_quant_override *)items + i);
        else
            put_subgraph(b, (const oct_subgraph *)items + i);
    }
    oct_str_puts(b, "]");
}

static void put_value(oct_str *b, const oct_field *f, const void *base)
{
    const char *at = (const char *)base + f->offset;
    const void *p = NULL;
    int32_t n = 0;
    uint64_t seed;
    double v;

    if (f->kind >= OCT_FIELD_LIST) memcpy(&n, at + sizeof(p), sizeof(n));
    switch (f->kind) {
    case OCT_FIELD_INT:
        memcpy(&n, at, sizeof(n));
        oct_str_printf(b, "%d", (int)n);
        return;
    case OCT_FIELD_SWITCH:
    case OCT_FIELD_SWITCH_OFF:
    case OCT_FIELD_TRISTATE:
        memcpy(&n, at, sizeof(n));
        oct_str_puts(b, (n > 0) == (f->kind != OCT_FIELD_SWITCH_OFF) ? "true" : "false");
        return;
    case OCT_FIELD_SEED:
        memcpy(&seed, at, sizeof(seed));
        oct_str_printf(b, "%" PRIu64, seed);
        return;
    case OCT_FIELD_REAL:
        memcpy(&v, at, sizeof(v));
        put_real(b, v);
        return;
    default:
        memcpy(&p, at, sizeof(p));
    }
    if (f->kind == OCT_FIELD_PREPROCESS)
        put_preprocess(b, p);
    else if (n == 1 && f == &oct_recipe_fields[OCT_RECIPE_IMAGES]) /* what it mostly is */
        put_text(b, *(const char *const *)p);
    else if (f->kind == OCT_FIELD_LIST)
        put_texts(b, p, n);
    else if (f->kind >= OCT_FIELD_LIST)
        put_structs(b, f, p, n);
    else
        put_text(b, p ? p : "");
}

/* "data.images" is written as images under data. */
static void put_field(oct_str *b, const oct_recipe *r, int i, char group[32])
{
    const oct_field *f = &oct_recipe_fields[i];
    const char *dot = strchr(f->path, '.');
    const size_t len = dot ? (size_t)(dot - f->path) : 0;

    if (len && (strlen(group) != len || strncmp(group, f->path, len))) {
        (void)snprintf(group, 32, "%.*s", (int)len, f->path);
        oct_str_printf(b, "%s:\n", group);
    }
    if (!len) *group = '\0';
    oct_str_printf(b, "%s%s: ", len ? "  " : "", dot ? dot + 1 : f->path);
    put_value(b, f, &r->values);
    oct_str_puts(b, "\n");
}

static bool says_anything(const oct_recipe *r, const char *group)
{
    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++)
        if (r->origin[i] && !strncmp(oct_recipe_fields[i].path, group, strlen(group))) return true;
    return false;
}

/* The command that such a recipe is for. */
static const char *command_of(const oct_recipe *r)
{
    if (says_anything(r, "prune.") || says_anything(r, "sparsity.")) return "prune";
    if (says_anything(r, "qat.") || (says_anything(r, "train.") && says_anything(r, "target")))
        return "qat";
    return says_anything(r, "train.") ? "train" : "quantize";
}

oct_status oct_recipe_text(oct_recipe *r, const char **text)
{
    OCT_ENTER(r->ctx);
    char group[32] = "";
    oct_status st = OCT_OK;
    oct_str b;

    oct_str_init(&b, r->ctx);
    oct_str_printf(&b, "# octet %s --recipe FILE\n", command_of(r));
    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++)
        if (r->origin[i] && i != OCT_RECIPE_FAST_BIAS) put_field(&b, r, i, group);
    if (b.failed || !(*text = oct_arena_strdup(r->arena, b.s))) st = OCT_ERR_MEMORY;
    oct_str_fini(&b);
    return st;
}

/* Where things are and how fast they are made says nothing about the result. */
static bool decides_numbers(int field)
{
    switch (field) {
    case OCT_RECIPE_TRAIN_MEMORY:
    case OCT_RECIPE_MODEL:
    case OCT_RECIPE_OUTPUT:
    case OCT_RECIPE_IMAGES:
    case OCT_RECIPE_DATA:
    case OCT_RECIPE_ANNOTATIONS:
    case OCT_RECIPE_LABELS:
    case OCT_RECIPE_EVAL:
    case OCT_RECIPE_EVAL_IMAGES:
    case OCT_RECIPE_EVAL_LIMIT:
    case OCT_RECIPE_SAVE_QMAP:
    case OCT_RECIPE_QUANT_CFG:
    case OCT_RECIPE_REPORT:
    case OCT_RECIPE_CALIBRATION_CACHE:
    case OCT_RECIPE_THREADS:
    case OCT_RECIPE_FAST_BIAS:
    case OCT_RECIPE_TRAIN_IMAGES:
    case OCT_RECIPE_TRAIN_ANNOTATIONS:
    case OCT_RECIPE_TRAIN_EVAL_IMAGES:
    case OCT_RECIPE_TRAIN_EVAL_ANNOTATIONS:
    case OCT_RECIPE_TRAIN_EVAL_LIMIT:
    case OCT_RECIPE_TRAIN_CHECKPOINTS:
    case OCT_RECIPE_TRAIN_TENSORBOARD:
    case OCT_RECIPE_TRAIN_RESUME:
    case OCT_RECIPE_TRAIN_LOAD_FROM:
        return false;
    default:
        return true;
    }
}

/* "data.limit" as limit in the map data, which stays open for others of its kind. */
static void put_inline(oct_str *b, const oct_recipe *r, int i, const char **open)
{
    const oct_field *f = &oct_recipe_fields[i];
    const char *dot = strchr(f->path, '.');
    const size_t len = dot ? (size_t)(dot - f->path) : 0;
    const bool is_inside = *open && len && !strncmp(*open, f->path, len + 1);

    if (*open && !is_inside) oct_str_puts(b, "}");
    if (b->len > 1) oct_str_puts(b, ", ");
    if (len && !is_inside) oct_str_printf(b, "%.*s: {", (int)len, f->path);
    oct_str_printf(b, "%s: ", dot ? dot + 1 : f->path);
    put_value(b, f, &r->values);
    *open = len ? f->path : NULL;
}

oct_status oct_recipe_line(oct_recipe *r, const char **text)
{
    OCT_ENTER(r->ctx);
    const char *open = NULL;
    oct_status st = OCT_OK;
    oct_str b;

    oct_str_init(&b, r->ctx);
    oct_str_puts(&b, "{");
    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++)
        if (r->origin[i] && decides_numbers(i)) put_inline(&b, r, i, &open);
    oct_str_puts(&b, open ? "}}" : "}");
    if (b.failed || !(*text = oct_arena_strdup(r->arena, b.s))) st = OCT_ERR_MEMORY;
    oct_str_fini(&b);
    return st;
}

oct_status oct_recipe_lines(oct_recipe *r, const char **text)
{
    OCT_ENTER(r->ctx);
    oct_status st = OCT_OK;
    oct_str b;

    oct_str_init(&b, r->ctx);
    oct_str_puts(&b, "");
    for (int i = 0; i < OCT_RECIPE_N_FIELDS; i++) {
        if (!r->origin[i] || !decides_numbers(i)) continue;
        oct_str_printf(&b, "%s: ", oct_recipe_fields[i].path);
        put_value(&b, &oct_recipe_fields[i], &r->values);
        oct_str_puts(&b, "\n");
    }
    if (b.failed || !(*text = oct_arena_strdup(r->arena, b.s ? b.s : ""))) st = OCT_ERR_MEMORY;
    oct_str_fini(&b);
    return st;
}
