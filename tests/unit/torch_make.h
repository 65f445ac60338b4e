/* SPDX-License-Identifier: Apache-2.0 */
/* torch.export archives made by hand: a zip archive of members that are not compressed. */
#ifndef OCT_TESTS_UNIT_TORCH_MAKE_H
#define OCT_TESTS_UNIT_TORCH_MAKE_H

#include "base/str.h"
#include "tests/test.h"
#include "torch/torch.h"

enum { MAX_MEMBERS = 16 };

typedef struct archive {
    oct_str bytes, directory;
    int n;
} archive;

static inline void put16(oct_str *s, unsigned v)
{
    const char b[] = {(char)(v & 255), (char)(v >> 8 & 255)};

    oct_str_put(s, b, 2);
}

static inline void put32(oct_str *s, uint32_t v)
{
    put16(s, v & 65535);
    put16(s, v >> 16);
}

static inline void archive_init(archive *a, oct_ctx *ctx)
{
    a->n = 0;
    oct_str_init(&a->bytes, ctx);
    oct_str_init(&a->directory, ctx);
}

/* What local header and directory entry have in common. */
static inline void put_sizes(oct_str *s, const char *name, uint32_t stored, uint32_t size,
                             unsigned method, unsigned n_extra)
{
    put16(s, 0); /* version */
    put16(s, 0); /* flags */
    put16(s, method);
    put32(s, 0); /* time */
    put32(s, 0); /* checksum: nobody looks */
    put32(s, stored);
    put32(s, size);
    put16(s, (unsigned)strlen(name));
    put16(s, n_extra);
}

/* A member whose bytes begin at a multiple of 64, as PyTorch writes them. `size` may lie. */
static inline void archive_put(archive *a, const char *name, const void *p, size_t n, uint32_t size,
                               unsigned method)
{
    const uint32_t at = (uint32_t)a->bytes.len;
    const unsigned pad = 64 - (unsigned)((at + 30 + strlen(name) + 4) % 64);
    static const char zeros[64];

    oct_str_put(&a->bytes, "PK\3\4", 4);
    put_sizes(&a->bytes, name, (uint32_t)n, size, method, pad + 4);
    oct_str_puts(&a->bytes, name);
    put16(&a->bytes, 0x4246);
    put16(&a->bytes, pad);
    oct_str_put(&a->bytes, zeros, pad);
    oct_str_put(&a->bytes, p, n);
    oct_str_put(&a->directory, "PK\1\2", 4);
    put16(&a->directory, 0);
    put_sizes(&a->directory, name, (uint32_t)n, size, method, 0);
    put16(&a->directory, 0); /* comment */
    put16(&a->directory, 0); /* disk */
    put16(&a->directory, 0);
    put32(&a->directory, 0);
    put32(&a->directory, at);
    oct_str_puts(&a->directory, name);
    a->n++;
}

static inline void archive_add(archive *a, const char *name, const void *p, size_t n)
{
    archive_put(a, name, p, n, (uint32_t)n, 0);
}

static inline void archive_text(archive *a, const char *name, const char *text)
{
    archive_add(a, name, text, strlen(text));
}

static inline void archive_end(archive *a)
{
    const uint32_t at = (uint32_t)a->bytes.len, size = (uint32_t)a->directory.len;

    oct_str_put(&a->bytes, a->directory.s, size);
    oct_str_put(&a->bytes, "PK\5\6\0\0\0\0", 8);
    put16(&a->bytes, (unsigned)a->n);
    put16(&a->bytes, (unsigned)a->n);
    put32(&a->bytes, size);
    put32(&a->bytes, at);
    put16(&a->bytes, 0);
    assert_false(a->bytes.failed);
}

static inline void archive_fini(archive *a)
{
    oct_str_fini(&a->bytes);
    oct_str_fini(&a->directory);
}

/* --- programs --- pieces of model.json, with ' for " */

#define T(name)          "{'as_tensor':{'name':'" name "'}}"
#define ARG(name, value) "{'name':'" name "','arg':" value ",'kind':1}"
#define NODE(op, in, out)                                                                          \
    "{'target':'torch.ops.aten." op "','inputs':[" in "],'outputs':[" out "],'metadata':{}}"
#define INT(n) "{'as_int':" #n "}"
#define META(name, sizes, strides)                                                                 \
    "'" name "':{'dtype':7,'sizes':[" sizes "],'strides':[" strides "],"                           \
    "'storage_offset':{'as_int':0},'layout':7}"

/* A program that takes x and the weight w (2x3) and returns y. */
typedef struct program {
    const char *nodes, *metas, *out, *schema;
} program;

static inline char *with_quotes(char *s)
{
    for (char *p = s; *p; p++)
        if (*p == '\'') *p = '"';
    return s;
}

static inline char *program_json(oct_arena *arena, const program *p)
{
    char *s = oct_arena_printf(
        arena,
        "{'graph_module':{'graph':{'inputs':[],'outputs':[],'nodes':[%s],'tensor_values':{%s}},"
        "'signature':{'input_specs':[{'parameter':{'arg':{'name':'p_w'},'parameter_name':'w'}},"
        "{'user_input':{'arg':" T(
            "x") "}}],"
                 "'output_specs':[{'user_output':{'arg':{'as_tensor':{'name':'%s'}}}}]},"
                 "'module_call_graph':[]},'schema_version':{'major':%s,'minor':1},'torch_version':'"
                 "2.9'}",
        p->nodes, p->metas, p->out, p->schema ? p->schema : "8");

    assert_non_null(s);
    return with_quotes(s);
}

#define X_2X3 META("x", INT(2) "," INT(3), INT(3) "," INT(1))

static inline const char *config_json(oct_arena *arena, const char *sizes, const char *strides,
                                      const char *offset)
{
    char *s = oct_arena_printf(
        arena,
        "{'config':{'w':{'path_name':'weight_0','is_param':true,'use_pickle':false,'tensor_meta':"
        "{'dtype':7,'sizes':[%s],'strides':[%s],'storage_offset':{'as_int':%s},'layout':7}}}}",
        sizes, strides, offset);

    assert_non_null(s);
    return with_quotes(s);
}

#endif
