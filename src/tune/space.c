/* SPDX-License-Identifier: Apache-2.0 */
/* The space that is searched: see space.h. */
#include "tune/space.h"

#include <string.h>

#include "base/rng.h"

enum { MAX_VALUES = 9, MAX_DIMENSIONS = 32, MAX_CHANGES = 4, ATTEMPTS = 50 };

/*
 * One row for each dimension. A value may set further fields, on lines of their own. The default
 * (nothing is set) is a value of each and not listed. Those that most often help come first.
 */
typedef struct dimension {
    const char *field;
    bool slow;           /* only if asked for */
    const char *targets; /* only for these, with commas around each; NULL: for all */
    const char *values[MAX_VALUES];
} dimension;

static const dimension table[] = {
    {"ranges.activations",
     false,
     NULL,
     {"mse", "minmax", "percentile", "kl", "mean_minmax", "percentile\nranges.percentile=99.9",
      "mse_wide", "percentile\nranges.percentile=99.999"}},
    {"ranges.weights", false, NULL, {"mse", "max", "percentile"}},
    {"bias_correction", false, NULL, {"none"}},
    {"preset", false, NULL, {"mixed", "performance"}},
    {"equalize", false, NULL, {"true"}},
    {"ranges.channels", false, NULL, {"mse", "minmax", "percentile"}},
    {"overflow_fix", false, ",ort,openvino,", {"enable", "first_layer_only"}},
    {"align_channels", false, NULL, {"true"}},
    {"heal", false, NULL, {"off"}},
    {"weight_bits", false, NULL, {"4"}},
    {"activation_bits", false, NULL, {"16"}},
    {"smooth_quant", false, NULL, {"0.5", "0.95"}},
    {"bias_correction", true, NULL, {"full"}},
    {"adaround", true, NULL, {"true"}},
    {"lsq", true, NULL, {"true"}},
};

/* What settings made by sensitivity consist of, and the target, beside the table's fields. */
static const char *const other_fields[] = {"ignored_scope.names", "overrides", "target",
                                           "ranges.percentile"};

/* --- texts --- */

/* The field of a line, up to its '='. */
static size_t field_length(const char *line)
{
    return strcspn(line, "=\n");
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end ? end + 1 : line + strlen(line);
}

/* Does the text have a line for this field, that ends with `mark` there? */
static bool sets(const char *text, const char *field, size_t len, char mark)
{
    for (const char *line = text; line && *line; line = next_line(line))
        if (strncmp(line, field, len) == 0 && line[len] == mark) return true;
    return false;
}

const char *oct_space_merge(oct_arena *arena, const char *a, const char *b)
{
    for (const char *line = b; *line; line = next_line(line))
        if (sets(a, line, field_length(line), '=')) return NULL;
    return oct_arena_printf(arena, "%s%s", a, b);
}

/* --- the dimensions of this search --- */

/* The values of one dimension as settings. */
typedef struct axis {
    const char **values;
    int32_t n;
} axis;

typedef struct space {
    oct_arena *arena;
    axis axes[MAX_DIMENSIONS];
    int32_t n_axes;
    const char **list; /* of what was made so far */
    int32_t n, most;
} space;

static oct_status add_axis(space *s, int32_t most, axis **out)
{
    axis *a = &s->axes[s->n_axes];

    if (!(a->values = oct_arena_array(s->arena, (size_t)most, sizeof(*a->values))))
        return OCT_ERR_MEMORY;
    s->n_axes++;
    *out = a;
    return OCT_OK;
}

static oct_status add_value(space *s, axis *a, const char *field, const char *value)
{
    const char *text = oct_arena_printf(s->arena, "%s=%s\n", field, value);

    if (!text) return OCT_ERR_MEMORY;
    a->values[a->n++] = text;
    return OCT_OK;
}

/* Is one of the targets that are searched among those the row is for? */
static bool is_for(const dimension *d, const oct_space_options *o)
{
    if (!d->targets) return true;
    for (int32_t i = 0; oct_target_name(i); i++) {
        const char *name = oct_target_name(i), *at = strstr(d->targets, name);
        const size_t len = strlen(name);

        if (!at || at[-1] != ',' || at[len] != ',') continue;
        if (o->targets && strstr(o->targets, name)) return true;
        if (o->fixed && (at = strstr(o->fixed, "target: ")) &&
            strncmp(at + strlen("target: "), name, len) == 0)
            return true;
    }
    return false;
}

static oct_status add_targets(space *s, const oct_space_options *o)
{
    char *words, *rest, *word;
    axis *a;

    if (!o->targets) return OCT_OK;
    if (!(words = oct_arena_strdup(s->arena, o->targets))) return OCT_ERR_MEMORY;
    OCT_TRY(add_axis(s, (int32_t)strlen(words) + 1, &a));
    for (word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        OCT_TRY(add_value(s, a, "target", word));
    return OCT_OK;
}

static oct_status add_mixed(space *s, const oct_space_options *o)
{
    axis *a;

    if (o->n_mixed < 1) return OCT_OK;
    OCT_TRY(add_axis(s, o->n_mixed, &a));
    for (int32_t i = 0; i < o->n_mixed; i++)
        a->values[a->n++] = o->mixed[i];
    return OCT_OK;
}

static oct_status fill_axes(space *s, const oct_space_options *o)
{
    OCT_TRY(add_targets(s, o));
    OCT_TRY(add_mixed(s, o));
    for (size_t i = 0; i < OCT_COUNT(table); i++) {
        const dimension *d = &table[i];
        axis *a;

        if ((d->slow && !o->slow) || !is_for(d, o) ||
            (o->fixed && sets(o->fixed, d->field, strlen(d->field), ':')))
            continue;
        OCT_TRY(add_axis(s, MAX_VALUES, &a));
        for (int k = 0; k < MAX_VALUES && d->values[k]; k++)
            OCT_TRY(add_value(s, a, d->field, d->values[k]));
    }
    return OCT_OK;
}

/* --- settings --- */

static bool is_new(const space *s, const char *text)
{
    for (int32_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i], text) == 0) return false;
    return true;
}

/* The first value of each dimension, then the second, and so on. */
static void add_single_changes(space *s)
{
    bool more = true;

    for (int32_t k = 0; more && s->n < s->most; k++) {
        more = false;
        for (int32_t i = 0; i < s->n_axes && s->n < s->most; i++)
            if (k < s->axes[i].n) {
                more = true;
                s->list[s->n++] = s->axes[i].values[k];
            }
    }
}

/* Two to four dimensions at once, in the order of the table, so that equal ones read the same. */
static const char *draw(space *s, oct_rng *rng)
{
    const int32_t changes = 2 + (int32_t)oct_rng_below(rng, MAX_CHANGES - 1);
    int32_t pick[MAX_DIMENSIONS];
    const char *text = "";

    for (int32_t i = 0; i < s->n_axes; i++)
        pick[i] = -1;
    for (int32_t c = 0; c < changes; c++) {
        const int32_t i = (int32_t)oct_rng_below(rng, (uint64_t)s->n_axes);

        pick[i] = (int32_t)oct_rng_below(rng, (uint64_t)s->axes[i].n);
    }
    for (int32_t i = 0; i < s->n_axes && text; i++)
        if (pick[i] >= 0) text = oct_space_merge(s->arena, text, s->axes[i].values[pick[i]]);
    return text;
}

oct_status oct_space_list(oct_arena *arena, const oct_space_options *o, int32_t n,
                          const char ***list, int32_t *n_listed)
{
    space s = {.arena = arena, .most = n};
    oct_rng rng;

    if (!(s.list = oct_arena_array(arena, (size_t)n + 1, sizeof(*s.list)))) return OCT_ERR_MEMORY;
    OCT_TRY(fill_axes(&s, o));
    if (n > 0) s.list[s.n++] = "";
    add_single_changes(&s);
    oct_rng_init(&rng, o->seed);
    for (int tries = 0; s.n < n && s.n_axes > 1 && tries < n * ATTEMPTS; tries++) {
        const char *text = draw(&s, &rng);

        if (text && is_new(&s, text)) s.list[s.n++] = text;
    }
    *list = s.list;
    *n_listed = s.n;
    return OCT_OK;
}

/* --- into a recipe --- */

static bool is_searched(const char *line, size_t len)
{
    for (size_t i = 0; i < OCT_COUNT(table); i++)
        if (strncmp(table[i].field, line, len) == 0 && !table[i].field[len]) return true;
    for (size_t i = 0; i < OCT_COUNT(other_fields); i++)
        if (strncmp(other_fields[i], line, len) == 0 && !other_fields[i][len]) return true;
    return false;
}

static oct_status apply(oct_ctx *ctx, oct_arena *arena, const char *settings, oct_recipe *r)
{
    for (const char *line = settings; *line; line = next_line(line)) {
        const size_t len = field_length(line);
        const char *field, *value;

        if (line[len] != '=' || !is_searched(line, len))
            return oct_fail(ctx, OCT_ERR_FORMAT,
                            "'%.*s' is nothing that a search sets: the file of trials was changed",
                            (int)OCT_MIN(len, (size_t)60), line);
        field = oct_arena_strndup(arena, line, len);
        value = oct_arena_strndup(arena, line + len + 1, strcspn(line + len + 1, "\n"));
        if (!field || !value) return OCT_ERR_MEMORY;
        OCT_TRY(oct_recipe_set(r, field, value));
    }
    return OCT_OK;
}

oct_status oct_space_apply(oct_ctx *ctx, const char *settings, oct_recipe *r)
{
    oct_arena *arena = oct_arena_new(ctx);
    oct_status st;

    if (!arena) return OCT_ERR_MEMORY;
    st = apply(ctx, arena, settings, r);
    oct_arena_free(arena);
    return st;
}
