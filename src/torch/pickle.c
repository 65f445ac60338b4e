/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dicts of tensors that torch.save() wrote, as PyTorch before 2.9 stores weights. A pickle is a
 * program for a stack machine; this one knows only what tensors need, and runs nothing.
 */
#include <string.h>

#include "torch/weights.h"

#define MAX_STACK 1000000
#define MAX_STEPS 50000000

typedef enum kind {
    K_MARK,
    K_NONE,
    K_INT,
    K_TEXT,
    K_GLOBAL, /* text: "module name" */
    K_TUPLE,
    K_DICT, /* items: keys and values in turn */
    K_STORAGE,
    K_TENSOR,
} kind;

typedef struct item {
    kind kind;
    int64_t i;
    const char *text;
    struct item **items; /* TUPLE, DICT */
    size_t n, cap;
    oct_dtype dtype;          /* STORAGE */
    const oct_weight *weight; /* TENSOR */
    oct_member *storage;
} item;

typedef struct machine {
    oct_program *p;
    oct_archive *a;
    const char *root; /* "archive/" */
    const uint8_t *at, *end;
    item **stack, **memo;
    size_t n, cap, cap_memo;
    size_t n_memo;
} machine;

static oct_status broken(machine *m, const char *what)
{
    return oct_fail(m->p->ctx, OCT_ERR_FORMAT, "broken pickle: %s", what);
}

static oct_status refuse(machine *m, const char *what)
{
    return oct_fail(m->p->ctx, OCT_ERR_UNSUPPORTED, "a pickle with more than tensors: %.100s",
                    what);
}

static item *new_item(machine *m, kind k)
{
    item *it = oct_arena_alloc(m->p->arena, sizeof(*it));

    if (it) it->kind = k;
    return it;
}

static oct_status push(machine *m, item *it)
{
    if (!it) return OCT_ERR_MEMORY;
    if (m->n >= MAX_STACK) return broken(m, "its stack grows too high");
    OCT_TRY(oct_grow(m->p->ctx, &m->stack, &m->cap, m->n + 1, sizeof(*m->stack)));
    m->stack[m->n++] = it;
    return OCT_OK;
}

static oct_status push_int(machine *m, int64_t v)
{
    item *it = new_item(m, K_INT);

    if (it) it->i = v;
    return push(m, it);
}

static oct_status pop(machine *m, item **out)
{
    if (!m->n) return broken(m, "its stack is empty");
    *out = m->stack[--m->n];
    return OCT_OK;
}

static oct_status take(machine *m, size_t n, const uint8_t **out)
{
    if ((size_t)(m->end - m->at) < n) return broken(m, "it ends early");
    *out = m->at;
    m->at += n;
    return OCT_OK;
}

/* A little-endian number of n bytes, signed if it fills them. */
static oct_status take_number(machine *m, size_t n, bool is_signed, int64_t *out)
{
    const uint8_t *p;
    uint64_t v = 0;

    OCT_TRY(take(m, n, &p));
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    if (is_signed && n > 0 && n < 8 && (v >> (8 * n - 1)) & 1) v |= ~(uint64_t)0 << (8 * n);
    *out = (int64_t)v;
    return OCT_OK;
}

static oct_status push_text(machine *m, kind k, size_t n)
{
    const uint8_t *p;
    item *it = new_item(m, k);

    OCT_TRY(take(m, n, &p));
    if (!it || !(it->text = oct_arena_strndup(m->p->arena, (const char *)p, n)))
        return OCT_ERR_MEMORY;
    return push(m, it);
}

/* GLOBAL: two lines, module and name. */
static oct_status push_global(machine *m)
{
    const uint8_t *first = memchr(m->at, '\n', (size_t)(m->end - m->at)), *second;
    item *it = new_item(m, K_GLOBAL);

    second = first ? memchr(first + 1, '\n', (size_t)(m->end - first - 1)) : NULL;
    if (!second) return broken(m, "it ends early");
    if (!it || !(it->text = oct_arena_printf(m->p->arena, "%.*s %.*s", (int)(first - m->at),
                                             (const char *)m->at, (int)(second - first - 1),
                                             (const char *)first + 1)))
        return OCT_ERR_MEMORY;
    m->at = second + 1;
    return push(m, it);
}

/* --- tuples and dicts --- */

static oct_status gather(machine *m, size_t n, item *into)
{
    if (n > m->n) return broken(m, "its stack is empty");
    OCT_TRY(oct_grow(m->p->ctx, &m->stack, &m->cap, m->n + 1, sizeof(*m->stack)));
    if (!(into->items = oct_arena_array(m->p->arena, n + 1, sizeof(item *)))) return OCT_ERR_MEMORY;
    if (n) memcpy(into->items, m->stack + m->n - n, n * sizeof(item *));
    into->n = n;
    m->n -= n;
    return OCT_OK;
}

static oct_status since_mark(machine *m, size_t *n)
{
    for (size_t i = m->n; i > 0; i--)
        if (m->stack[i - 1]->kind == K_MARK) {
            *n = m->n - i;
            return OCT_OK;
        }
    return broken(m, "a mark is missing");
}

static oct_status push_tuple(machine *m, size_t n, bool has_mark)
{
    item *it = new_item(m, K_TUPLE), *mark;

    if (!it) return OCT_ERR_MEMORY;
    OCT_TRY(gather(m, n, it));
    if (has_mark) OCT_TRY(pop(m, &mark));
    return push(m, it);
}

static oct_status set_items(machine *m, size_t n, bool has_mark)
{
    item pairs = {.kind = K_TUPLE}, *mark, *dict;

    OCT_TRY(gather(m, n, &pairs));
    if (has_mark) OCT_TRY(pop(m, &mark));
    if (!m->n || (dict = m->stack[m->n - 1])->kind != K_DICT || n % 2)
        return broken(m, "items of what is no dict");
    for (size_t i = 0; i < n; i++) {
        if (dict->n == dict->cap) {
            const size_t cap = dict->cap ? 2 * dict->cap : 16;
            item **items = oct_arena_array(m->p->arena, cap, sizeof(item *));

            if (!items) return OCT_ERR_MEMORY;
            if (dict->n) memcpy(items, dict->items, dict->n * sizeof(item *));
            dict->items = items;
            dict->cap = cap;
        }
        dict->items[dict->n++] = pairs.items[i];
    }
    return OCT_OK;
}

/* --- tensors --- */

static oct_dtype storage_type(const char *name)
{
    static const struct {
        const char *name;
        oct_dtype type;
    } table[] = {
        {"torch FloatStorage", OCT_DTYPE_F32}, {"torch DoubleStorage", OCT_DTYPE_F64},
        {"torch HalfStorage", OCT_DTYPE_F16},  {"torch BFloat16Storage", OCT_DTYPE_BF16},
        {"torch LongStorage", OCT_DTYPE_I64},  {"torch IntStorage", OCT_DTYPE_I32},
        {"torch ShortStorage", OCT_DTYPE_I16}, {"torch CharStorage", OCT_DTYPE_I8},
        {"torch ByteStorage", OCT_DTYPE_U8},   {"torch BoolStorage", OCT_DTYPE_BOOL},
    };

    for (size_t i = 0; i < OCT_COUNT(table); i++)
        if (strcmp(name, table[i].name) == 0) return table[i].type;
    return OCT_DTYPE_NONE;
}

/* ('storage', TypeStorage, key, device, numel) */
static oct_status push_storage(machine *m)
{
    item *id, *it = new_item(m, K_STORAGE);
    const char *path;

    OCT_TRY(pop(m, &id));
    if (!it) return OCT_ERR_MEMORY;
    if (id->kind != K_TUPLE || id->n < 3 || id->items[1]->kind != K_GLOBAL ||
        id->items[2]->kind != K_TEXT)
        return broken(m, "a storage without type and key");
    if (!(it->dtype = storage_type(id->items[1]->text))) return refuse(m, id->items[1]->text);
    if (!(path = oct_arena_printf(m->p->arena, "%sdata/%s", m->root, id->items[2]->text)))
        return OCT_ERR_MEMORY;
    if (!(it->storage = oct_archive_find(m->a, path))) return broken(m, "a storage is missing");
    return push(m, it);
}

static oct_status read_dims(machine *m, const item *t, int64_t out[OCT_MAX_RANK])
{
    if (t->kind != K_TUPLE || t->n > OCT_MAX_RANK) return broken(m, "a shape is no tuple");
    for (size_t i = 0; i < t->n; i++) {
        if (t->items[i]->kind != K_INT || t->items[i]->i < 0)
            return broken(m, "a shape that is no list of numbers");
        out[i] = t->items[i]->i;
    }
    return OCT_OK;
}

/* _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks) */
static oct_status push_tensor(machine *m, const item *args)
{
    oct_weight *w = oct_arena_alloc(m->p->arena, sizeof(*w));
    item *it = new_item(m, K_TENSOR);

    if (!w || !it) return OCT_ERR_MEMORY;
    if (args->n < 4 || args->items[0]->kind != K_STORAGE || args->items[1]->kind != K_INT ||
        args->items[1]->i < 0)
        return broken(m, "a tensor without storage");
    w->archive = m->a;
    w->storage = args->items[0]->storage;
    w->offset = args->items[1]->i;
    w->meta.type.dtype = args->items[0]->dtype;
    OCT_TRY(read_dims(m, args->items[2], w->meta.type.dim));
    OCT_TRY(read_dims(m, args->items[3], w->strides));
    if (args->items[2]->n != args->items[3]->n) return broken(m, "sizes and strides differ");
    w->meta.type.rank = (int32_t)args->items[2]->n;
    it->weight = w;
    return push(m, it);
}

/* Calls: only of the functions that make tensors and dicts. */
static oct_status reduce(machine *m)
{
    item *args, *fn;

    OCT_TRY(pop(m, &args));
    OCT_TRY(pop(m, &fn));
    if (fn->kind != K_GLOBAL || args->kind != K_TUPLE) return broken(m, "a call of no function");
    if (strcmp(fn->text, "torch._utils _rebuild_tensor_v2") == 0) return push_tensor(m, args);
    if (strcmp(fn->text, "torch._utils _rebuild_parameter") == 0 && args->n >= 1)
        return push(m, args->items[0]);
    if (strcmp(fn->text, "collections OrderedDict") == 0) return push(m, new_item(m, K_DICT));
    return refuse(m, fn->text);
}

/* --- memory --- */

static oct_status memo_put(machine *m, int64_t at)
{
    if (!m->n || at < 0 || at > MAX_STACK) return broken(m, "its memory is too large");
    OCT_TRY(oct_grow(m->p->ctx, &m->memo, &m->cap_memo, (size_t)at + 1, sizeof(*m->memo)));
    while (m->n_memo <= (size_t)at)
        m->memo[m->n_memo++] = NULL;
    m->memo[at] = m->stack[m->n - 1];
    return OCT_OK;
}

static oct_status memo_get(machine *m, int64_t at)
{
    if (at < 0 || (uint64_t)at >= m->n_memo || !m->memo[at])
        return broken(m, "it reads memory that nobody wrote");
    return push(m, m->memo[at]);
}

/* --- opcodes --- */

static oct_status step_number(machine *m, uint8_t op)
{
    int64_t n;

    switch (op) {
    case 'X': /* BINUNICODE */
        OCT_TRY(take_number(m, 4, false, &n));
        return push_text(m, K_TEXT, (size_t)n);
    case 'J': /* BININT */
        OCT_TRY(take_number(m, 4, true, &n));
        return push_int(m, n);
    case 'K': /* BININT1 */
        OCT_TRY(take_number(m, 1, false, &n));
        return push_int(m, n);
    case 'M': /* BININT2 */
        OCT_TRY(take_number(m, 2, false, &n));
        return push_int(m, n);
    case 0x8a: /* LONG1 */
        OCT_TRY(take_number(m, 1, false, &n));
        if (n > 8) return broken(m, "a number is too long");
        OCT_TRY(take_number(m, (size_t)n, true, &n));
        return push_int(m, n);
    case 'q': /* BINPUT */
    case 'r': /* LONG_BINPUT */
        OCT_TRY(take_number(m, op == 'q' ? 1 : 4, false, &n));
        return memo_put(m, n);
    case 'h': /* BINGET */
    case 'j': /* LONG_BINGET */
        OCT_TRY(take_number(m, op == 'h' ? 1 : 4, false, &n));
        return memo_get(m, n);
    default:
        return oct_fail(m->p->ctx, OCT_ERR_UNSUPPORTED,
                        "a pickle with more than tensors (opcode 0x%02x)", op);
    }
}

static oct_status step(machine *m, uint8_t op)
{
    item *state;
    size_t n;

    switch (op) {
    case 0x80: /* PROTO */
        return take(m, 1, &(const uint8_t *){NULL});
    case '}': /* EMPTY_DICT */
        return push(m, new_item(m, K_DICT));
    case ')': /* EMPTY_TUPLE */
        return push_tuple(m, 0, false);
    case '(': /* MARK */
        return push(m, new_item(m, K_MARK));
    case 'N': /* NONE */
        return push(m, new_item(m, K_NONE));
    case 0x88: /* NEWTRUE */
    case 0x89: /* NEWFALSE */
        return push_int(m, op == 0x88);
    case 'c': /* GLOBAL */
        return push_global(m);
    case 't': /* TUPLE */
        OCT_TRY(since_mark(m, &n));
        return push_tuple(m, n, true);
    case 0x85: /* TUPLE1 .. TUPLE3 */
    case 0x86:
    case 0x87:
        return push_tuple(m, (size_t)(op - 0x84), false);
    case 's': /* SETITEM */
        return set_items(m, 2, false);
    case 'u': /* SETITEMS */
        OCT_TRY(since_mark(m, &n));
        return set_items(m, n, true);
    case 'Q': /* BINPERSID */
        return push_storage(m);
    case 'R': /* REDUCE */
        return reduce(m);
    case 'b': /* BUILD: attributes of an OrderedDict, of no use */
        return pop(m, &state);
    default:
        return step_number(m, op);
    }
}

static oct_status run(machine *m, oct_map *map)
{
    const item *dict;

    for (int64_t i = 0;; i++) {
        const uint8_t *op;

        if (i > MAX_STEPS) return broken(m, "it does not end");
        OCT_TRY(take(m, 1, &op));
        if (*op == '.') break;
        OCT_TRY(step(m, *op));
    }
    if (m->n != 1 || (dict = m->stack[0])->kind != K_DICT)
        return refuse(m, "not a dict of tensors");
    for (size_t i = 0; i + 1 < dict->n; i += 2) {
        const item *key = dict->items[i], *value = dict->items[i + 1];

        if (key->kind != K_TEXT || value->kind != K_TENSOR) continue;
        OCT_TRY(oct_map_put(map, key->text, (void *)(uintptr_t)value->weight));
    }
    return OCT_OK;
}

oct_status oct_pickle_read(oct_program *p, oct_archive *a, oct_map *map)
{
    static const char name[] = "data.pkl";
    machine m = {.p = p, .a = a};
    oct_span_of bytes;
    oct_status st;

    for (size_t i = 0; i < oct_archive_count(a); i++) {
        oct_member *f = oct_archive_at(a, i);
        const size_t len = strlen(f->name), n = sizeof(name) - 1;

        if (len < n || strcmp(f->name + len - n, name) != 0) continue;
        if (!(m.root = oct_arena_strndup(p->arena, f->name, len - n))) return OCT_ERR_MEMORY;
        OCT_TRY(oct_archive_bytes(a, f, &bytes));
        m.at = bytes.p;
        m.end = bytes.p + bytes.size;
        st = run(&m, map);
        oct_free(p->ctx, m.stack);
        oct_free(p->ctx, m.memo);
        return st;
    }
    return oct_fail(p->ctx, OCT_ERR_FORMAT, "no data.pkl in it");
}
