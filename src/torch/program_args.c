/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments, nodes and types of an exported program. */
#include <math.h>
#include <string.h>

#include "torch/program.h"

#define MAX_LIST 65536 /* elements of an argument */

oct_dtype oct_torch_dtype(int64_t scalar_type)
{
    static const oct_dtype table[] = {
        [1] = OCT_DTYPE_U8,      [2] = OCT_DTYPE_I8,          [3] = OCT_DTYPE_I16,
        [4] = OCT_DTYPE_I32,     [5] = OCT_DTYPE_I64,         [6] = OCT_DTYPE_F16,
        [7] = OCT_DTYPE_F32,     [8] = OCT_DTYPE_F64,         [12] = OCT_DTYPE_BOOL,
        [13] = OCT_DTYPE_BF16,   [28] = OCT_DTYPE_U16,        [29] = OCT_DTYPE_F8E4M3FN,
        [30] = OCT_DTYPE_F8E5M2, [31] = OCT_DTYPE_F8E4M3FNUZ, [32] = OCT_DTYPE_F8E5M2FNUZ,
        [34] = OCT_DTYPE_U32,    [35] = OCT_DTYPE_U64,
    };

    return scalar_type >= 0 && (size_t)scalar_type < OCT_COUNT(table) ? table[scalar_type]
                                                                      : OCT_DTYPE_NONE;
}

oct_status oct_program_text(oct_program *p, const json_t *j, const char *what, const char **out)
{
    const char *s = json_string_value(j);

    if (!s) return oct_fail(p->ctx, OCT_ERR_FORMAT, "%s is not a text", what);
    *out = oct_arena_strdup(p->arena, s);
    return *out ? OCT_OK : OCT_ERR_MEMORY;
}

oct_status oct_program_union(oct_program *p, const json_t *j, const char **key,
                             const json_t **value)
{
    void *it = json_object_iter((json_t *)(uintptr_t)j);

    if (!it || json_object_size(j) != 1)
        return oct_fail(p->ctx, OCT_ERR_FORMAT, "an argument is not an object with one key");
    *key = json_object_iter_key(it);
    *value = json_object_iter_value(it);
    return OCT_OK;
}

/* --- arguments --- */

/* Floats that JSON has no word for are texts. */
static oct_status read_float(oct_program *p, const json_t *j, oct_arg *out)
{
    const char *s = json_string_value(j);

    out->kind = OCT_ARG_FLOAT;
    if (json_is_number(j))
        out->f = json_number_value(j);
    else if (s && strcmp(s, "Infinity") == 0)
        out->f = HUGE_VAL;
    else if (s && strcmp(s, "-Infinity") == 0)
        out->f = -HUGE_VAL;
    else if (s && strcmp(s, "NaN") == 0)
        out->f = (double)NAN;
    else
        return oct_fail(p->ctx, OCT_ERR_FORMAT, "a number is expected");
    return OCT_OK;
}

static oct_status read_int(oct_program *p, const json_t *j, oct_arg *out)
{
    if (!json_is_integer(j)) return oct_fail(p->ctx, OCT_ERR_FORMAT, "an integer is expected");
    *out = (oct_arg){.kind = OCT_ARG_INT, .i = json_integer_value(j)};
    return OCT_OK;
}

static oct_status read_bool(oct_program *p, const json_t *j, oct_arg *out)
{
    if (!json_is_boolean(j)) return oct_fail(p->ctx, OCT_ERR_FORMAT, "true or false is expected");
    *out = (oct_arg){.kind = OCT_ARG_BOOL, .i = json_is_true(j)};
    return OCT_OK;
}

static oct_status read_string(oct_program *p, const json_t *j, oct_arg *out)
{
    out->kind = OCT_ARG_STRING;
    return oct_program_text(p, j, "an argument", &out->s);
}

static oct_status read_tensor(oct_program *p, const json_t *j, oct_arg *out)
{
    out->kind = OCT_ARG_TENSOR;
    return oct_program_text(p, json_object_get(j, "name"), "the name of a tensor", &out->s);
}

/* {as_name} of a symbolic number, or the number. */
static oct_status read_sym(oct_program *p, const json_t *j, oct_arg *out)
{
    const json_t *name = json_object_get(j, "as_name");

    if (!name) return oct_program_arg(p, j, out);
    out->kind = OCT_ARG_SYM;
    return oct_program_text(p, name, "the name of a number", &out->s);
}

static oct_status read_none(oct_program *p, const json_t *j, oct_arg *out)
{
    (void)p;
    (void)j;
    *out = (oct_arg){.kind = OCT_ARG_NONE};
    return OCT_OK;
}

typedef oct_status (*read_fn)(oct_program *p, const json_t *j, oct_arg *out);

static oct_status read_list(oct_program *p, const json_t *j, read_fn one, oct_arg *out)
{
    const size_t n = json_array_size(j);
    oct_arg *list;

    if (!json_is_array(j)) return oct_fail(p->ctx, OCT_ERR_FORMAT, "a list is expected");
    if (n > MAX_LIST)
        return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED, "a list of %zu elements in an argument", n);
    if (!(list = oct_arena_array(p->arena, n + 1, sizeof(*list)))) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++)
        OCT_TRY(one(p, json_array_get(j, i), &list[i]));
    *out = (oct_arg){.kind = OCT_ARG_LIST, .n = (int32_t)n, .list = list};
    return OCT_OK;
}

static oct_status read_ints(oct_program *p, const json_t *j, oct_arg *out)
{
    return read_list(p, j, read_int, out);
}

static const struct {
    const char *key;
    read_fn one;
    bool is_list;
} kinds[] = {
    {"as_tensor", read_tensor, false},
    {"as_none", read_none, false},
    {"as_int", read_int, false},
    {"as_ints", read_int, true},
    {"as_float", read_float, false},
    {"as_floats", read_float, true},
    {"as_bool", read_bool, false},
    {"as_bools", read_bool, true},
    {"as_string", read_string, false},
    {"as_strings", read_string, true},
    {"as_tensors", read_tensor, true},
    {"as_optional_tensor", oct_program_arg, false},
    {"as_optional_tensors", oct_program_arg, true},
    {"as_sym_int", read_sym, false},
    {"as_sym_ints", read_sym, true},
    {"as_sym_float", read_sym, false},
    {"as_sym_floats", read_sym, true},
    {"as_sym_bool", read_sym, false},
    {"as_sym_bools", read_sym, true},
    {"as_scalar_type", read_int, false},
    {"as_memory_format", read_int, false},
    {"as_layout", read_int, false},
    {"as_device", read_none, false},
    {"as_int_lists", read_ints, true},
};

/* Unions nest by a few levels at most, and the JSON reader bounds its own depth. */
oct_status oct_program_arg(oct_program *p, const json_t *j, oct_arg *out)
{
    const json_t *value;
    const char *key;

    OCT_TRY(oct_program_union(p, j, &key, &value));
    for (size_t i = 0; i < OCT_COUNT(kinds); i++)
        if (strcmp(kinds[i].key, key) == 0)
            return kinds[i].is_list ? read_list(p, value, kinds[i].one, out)
                                    : kinds[i].one(p, value, out);
    out->kind = OCT_ARG_OTHER;
    out->s = oct_arena_strdup(p->arena, key);
    return out->s ? OCT_OK : OCT_ERR_MEMORY;
}

/* --- types --- */

/* The symbol of an expression such as "Symbol('s77', positive=True)" or "s0", in the arena. */
static const char *symbol_of(oct_program *p, const char *expr)
{
    static const char open[] = "Symbol('";
    const char *begin = strncmp(expr, open, sizeof(open) - 1) == 0 ? expr + sizeof(open) - 1 : NULL;

    if (begin) return oct_arena_strndup(p->arena, begin, strcspn(begin, "'"));
    return strpbrk(expr, "( *+") ? NULL : oct_arena_strdup(p->arena, expr);
}

/* {as_int} or {as_expr: {expr_str, hint}}. */
static oct_status read_size(oct_program *p, const json_t *j, int64_t *out, const char **name)
{
    const json_t *v = json_object_get(j, "as_int");
    const char *expr =
        json_string_value(json_object_get(json_object_get(j, "as_expr"), "expr_str"));

    *out = -1;
    if (v && !json_is_integer(v)) return oct_fail(p->ctx, OCT_ERR_FORMAT, "a size is no integer");
    if (v && (*out = json_integer_value(v)) < 0)
        return oct_fail(p->ctx, OCT_ERR_FORMAT, "a size is negative");
    if (!v && expr && name) *name = symbol_of(p, expr);
    return OCT_OK;
}

static bool is_contiguous(const oct_type *t, const int64_t *strides)
{
    int64_t want = 1;

    for (int i = t->rank - 1; i >= 0; i--) {
        if (t->dim[i] != 1 && strides[i] >= 0 && want >= 0 && strides[i] != want) return false;
        if (t->dim[i] < 0 || want < 0 || !oct_mul_i64(want, OCT_MAX(t->dim[i], 1), &want))
            want = -1;
    }
    return true;
}

oct_status oct_program_meta(oct_program *p, const json_t *j, oct_meta *out, int64_t *strides,
                            int64_t *offset)
{
    const json_t *sizes = json_object_get(j, "sizes"), *steps = json_object_get(j, "strides");
    const size_t rank = json_array_size(sizes);
    int64_t own[OCT_MAX_RANK], first;

    if (!json_is_array(sizes) || !json_is_array(steps) || json_array_size(steps) != rank)
        return oct_fail(p->ctx, OCT_ERR_FORMAT, "a tensor without sizes and strides");
    if (rank > OCT_MAX_RANK)
        return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED, "a tensor of %zu dimensions (at most %d)",
                        rank, OCT_MAX_RANK);
    *out = (oct_meta){.type = {.rank = (int32_t)rank}};
    out->type.dtype = oct_torch_dtype(json_integer_value(json_object_get(j, "dtype")));
    if (rank && !(out->dim_name = oct_arena_array(p->arena, rank, sizeof(*out->dim_name))))
        return OCT_ERR_MEMORY;
    if (!strides) strides = own;
    for (size_t i = 0; i < rank; i++) {
        OCT_TRY(read_size(p, json_array_get(sizes, i), &out->type.dim[i], &out->dim_name[i]));
        OCT_TRY(read_size(p, json_array_get(steps, i), &strides[i], NULL));
    }
    OCT_TRY(read_size(p, json_object_get(j, "storage_offset"), &first, NULL));
    if (offset) *offset = OCT_MAX(first, 0);
    out->is_contiguous = is_contiguous(&out->type, strides);
    return OCT_OK;
}

/* --- nodes --- */

/* The next item of "key,path,class;key,path,class": commas and semicolons inside brackets do not
 * count. Returns where the item ends. */
static const char *next_item(const char *s, const char **path, const char **path_end,
                             const char **class_begin)
{
    int depth = 0, n_commas = 0;

    *path = *path_end = *class_begin = s;
    for (; *s && (depth > 0 || *s != ';'); s++) {
        if (*s == '(' || *s == '[') depth++;
        if ((*s == ')' || *s == ']') && depth > 0) depth--;
        if (*s != ',' || depth) continue;
        if (n_commas++ == 0) *path = s + 1;
        if (n_commas == 2) *path_end = s;
        *class_begin = s + 1;
    }
    return s;
}

/* "pkg.Net" as "Net"; classes made in functions are "pkg.make.<locals>.Net". */
static const char *short_class(const char *begin, const char *end)
{
    const char *s = end;

    while (s > begin && s[-1] != '.')
        s--;
    return s;
}

static oct_status read_stack(oct_program *p, const char *stack, oct_call_node *out)
{
    enum { MAX_CLASSES = 512 };
    char classes[MAX_CLASSES];
    size_t used = 0;

    out->path = out->classes = "";
    for (const char *s = stack; s && *s;) {
        const char *path, *path_end, *name;
        const char *end = next_item(s, &path, &path_end, &name);
        const char *plain = short_class(name, end);
        const size_t len = (size_t)(end - plain);

        if (path_end > path &&
            !(out->path = oct_arena_strndup(p->arena, path, (size_t)(path_end - path))))
            return OCT_ERR_MEMORY;
        if (len + 4 < MAX_CLASSES - used) {
            if (used) memcpy(classes + used, " > ", 3), used += 3;
            memcpy(classes + used, plain, len);
            used += len;
        }
        s = *end ? end + 1 : end;
    }
    if (used && !(out->classes = oct_arena_strndup(p->arena, classes, used))) return OCT_ERR_MEMORY;
    return OCT_OK;
}

static oct_status read_inputs(oct_program *p, const json_t *list, oct_call_node *out)
{
    const size_t n = json_array_size(list);

    if (n > MAX_LIST) return oct_fail(p->ctx, OCT_ERR_UNSUPPORTED, "%zu arguments", n);
    if (!(out->in = oct_arena_array(p->arena, n + 1, sizeof(*out->in)))) return OCT_ERR_MEMORY;
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_array_get(list, i);

        OCT_TRY(oct_program_text(p, json_object_get(j, "name"), "the name of an argument",
                                 &out->in[i].name));
        OCT_TRY(oct_program_arg(p, json_object_get(j, "arg"), &out->in[i].value));
        out->n_in++;
    }
    return OCT_OK;
}

/* Results of a list (chunk, split) and of a tuple (topk) are told apart by the operator only. */
static oct_status read_outputs(oct_program *p, const json_t *list, oct_call_node *out)
{
    const size_t n = json_array_size(list);
    oct_arg all;

    OCT_TRY(read_list(p, list, oct_program_arg, &all));
    if (n == 1 && all.list[0].kind == OCT_ARG_LIST) all = all.list[0];
    out->out = (oct_arg *)(uintptr_t)all.list;
    out->n_out = all.n;
    return OCT_OK;
}

oct_status oct_program_node(oct_program *p, const json_t *j, oct_call_node *out)
{
    static const char prefix[] = "torch.ops.";
    const json_t *metadata = json_object_get(j, "metadata");

    *out = (oct_call_node){0};
    OCT_TRY(
        oct_program_text(p, json_object_get(j, "target"), "the target of a node", &out->target));
    if (strncmp(out->target, prefix, sizeof(prefix) - 1) == 0) out->target += sizeof(prefix) - 1;
    OCT_TRY(read_inputs(p, json_object_get(j, "inputs"), out));
    OCT_TRY(read_outputs(p, json_object_get(j, "outputs"), out));
    return read_stack(p, json_string_value(json_object_get(metadata, "nn_module_stack")), out);
}
