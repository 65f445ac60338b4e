/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an equation: terms, ellipsis, the implicit output. */
#include "op/einsum_equation.h"

#include <string.h>

static int label_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return 26 + c - 'a';
    return -1;
}

/* The labels of one term "ab...c" into label[]; *dots is where "..." stands, or -1. */
static oct_status read_term(const oct_node *n, const char *s, size_t len, int *label, int *n_label,
                            int *dots)
{
    *n_label = 0;
    *dots = -1;
    for (size_t i = 0; i < len; i++) {
        if (s[i] == ' ') continue;
        if (s[i] == '.' && i + 2 < len && s[i + 1] == '.' && s[i + 2] == '.' && *dots < 0) {
            *dots = *n_label;
            i += 2;
            continue;
        }
        if (label_of(s[i]) < 0)
            return oct_node_fail(n, OCT_ERR_FORMAT, "equation has a '%c' it may not have", s[i]);
        if (*n_label == OCT_MAX_RANK)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "equation has more than %d labels a term",
                                 OCT_MAX_RANK);
        label[(*n_label)++] = label_of(s[i]);
    }
    return OCT_OK;
}

/* Inserts the labels that "..." stands for between those before and after it. */
static void insert_dots(int *label, int n_label, int dots, int n_dots)
{
    memmove(label + dots + n_dots, label + dots, (size_t)(n_label - dots) * sizeof(*label));
    for (int i = 0; i < n_dots; i++)
        label[dots + i] = OCT_EINSUM_LABELS - n_dots + i;
}

static oct_status bind_dim(const oct_node *n, oct_einsum *e, int label, int64_t dim)
{
    int64_t *d = &e->dim[label];

    e->n_uses[label]++;
    if (*d == dim || dim == 1) {
        if (*d == -1 && e->n_uses[label] == 1) *d = dim;
        return OCT_OK;
    }
    if (dim < 0) {
        if (*d == 1) *d = -1;
        return OCT_OK;
    }
    if (*d > 1 || *d == 0)
        return oct_node_fail(n, OCT_ERR_SHAPE, "one label stands for sizes %lld and %lld",
                             (long long)*d, (long long)dim);
    *d = dim;
    return OCT_OK;
}

static oct_status read_operand(const oct_node *n, oct_einsum *e, const char *s, size_t len,
                               const oct_type *t)
{
    int *label = e->label[e->n_in];
    int n_label, dots, n_dots;

    OCT_TRY(read_term(n, s, len, label, &n_label, &dots));
    n_dots = t->rank - n_label;
    if (n_dots < 0 || (dots < 0 && n_dots > 0))
        return oct_node_fail(n, OCT_ERR_SHAPE, "equation names %d dims of operand %d, it has %d",
                             n_label, e->n_in, t->rank);
    if (dots >= 0) insert_dots(label, n_label, dots, n_dots);
    for (int d = 0; d < t->rank; d++)
        OCT_TRY(bind_dim(n, e, label[d], t->dim[d]));
    e->rank[e->n_in++] = t->rank;
    e->n_dots = OCT_MAX(e->n_dots, n_dots);
    return OCT_OK;
}

static oct_status read_output(const oct_node *n, oct_einsum *e, const char *s)
{
    bool seen[OCT_EINSUM_LABELS] = {false};
    int dots;

    if (s) {
        OCT_TRY(read_term(n, s, strlen(s), e->out, &e->n_out, &dots));
        if (e->n_out + e->n_dots > OCT_MAX_RANK && dots >= 0)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "output has more than %d dims",
                                 OCT_MAX_RANK);
        if (dots >= 0) {
            insert_dots(e->out, e->n_out, dots, e->n_dots);
            e->n_out += e->n_dots;
        }
    } else { /* implicit: "..." and, in order, the labels that occur once */
        int once = 0;

        for (int l = 0; l < OCT_EINSUM_DOT; l++)
            once += e->n_uses[l] == 1;
        if (once + e->n_dots > OCT_MAX_RANK)
            return oct_node_fail(n, OCT_ERR_UNSUPPORTED, "output has more than %d dims",
                                 OCT_MAX_RANK);
        for (int i = 0; i < e->n_dots; i++)
            e->out[e->n_out++] = OCT_EINSUM_LABELS - e->n_dots + i;
        for (int l = 0; l < OCT_EINSUM_DOT; l++)
            if (e->n_uses[l] == 1) e->out[e->n_out++] = l;
    }
    for (int i = 0; i < e->n_out; i++) {
        if (seen[e->out[i]] || e->n_uses[e->out[i]] == 0)
            return oct_node_fail(n, OCT_ERR_FORMAT, "an output label is %s",
                                 seen[e->out[i]] ? "given twice" : "not one of an operand");
        seen[e->out[i]] = true;
    }
    return OCT_OK;
}

oct_status oct_einsum_read(const oct_node *n, const oct_type *const *in, oct_einsum *e)
{
    const char *s = n->attr[OCT_EINSUM_EQUATION].s, *arrow = strstr(s, "->"), *end;

    memset(e, 0, sizeof(*e));
    for (int l = 0; l < OCT_EINSUM_LABELS; l++)
        e->dim[l] = -1;
    end = arrow ? arrow : s + strlen(s);
    for (int i = 0; i < n->n_in; i++) {
        const char *comma = memchr(s, ',', (size_t)(end - s)), *stop = comma ? comma : end;

        OCT_TRY(read_operand(n, e, s, (size_t)(stop - s), in[i]));
        if (!comma != (i == n->n_in - 1))
            return oct_node_fail(n, OCT_ERR_FORMAT, "equation and inputs differ in number");
        s = comma ? comma + 1 : end;
    }
    return read_output(n, e, arrow ? arrow + 2 : NULL);
}
