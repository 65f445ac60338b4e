/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a tensor's axes into kept and reduced ones. */
#include "op/axes.h"

oct_split oct_split_axes(const oct_type *t, unsigned cut)
{
    oct_split s = {.kept_len = 1, .cut_len = 1};
    int64_t step = 1;
    int last = -1; /* group of the axis before: merged if the same */
    int64_t dims[2][OCT_MAX_RANK], steps[2][OCT_MAX_RANK];
    int n[2] = {0, 0};

    for (int d = t->rank - 1; d >= 0; d--) {
        const int group = (cut >> d & 1u) != 0;

        if (t->dim[d] != 1) {
            if (group == last) {
                dims[group][n[group] - 1] *= t->dim[d];
            } else {
                dims[group][n[group]] = t->dim[d];
                steps[group][n[group]++] = step;
            }
            last = group;
        }
        step *= t->dim[d];
    }
    s.n_kept = n[0];
    s.n_cut = n[1];
    for (int i = 0; i < n[0]; i++) { /* they were found from the back */
        s.kept_dim[i] = dims[0][n[0] - 1 - i];
        s.kept_step[i] = steps[0][n[0] - 1 - i];
        s.kept_len *= s.kept_dim[i];
    }
    for (int i = 0; i < n[1]; i++) {
        s.cut_dim[i] = dims[1][n[1] - 1 - i];
        s.cut_step[i] = steps[1][n[1] - 1 - i];
        s.cut_len *= s.cut_dim[i];
    }
    return s;
}

static int64_t offset(int n, const int64_t *dim, const int64_t *step, int64_t i)
{
    int64_t at = 0;

    for (int d = n - 1; d >= 0 && i > 0; d--) {
        at += i % dim[d] * step[d];
        i /= dim[d];
    }
    return at;
}

int64_t oct_split_at(const oct_split *s, int64_t i)
{
    return offset(s->n_kept, s->kept_dim, s->kept_step, i);
}

int64_t oct_split_runs(const oct_split *s)
{
    int64_t n = 1;

    for (int d = 0; d < s->n_cut - 1; d++)
        n *= s->cut_dim[d];
    return s->cut_len ? n : 0;
}

int64_t oct_split_run_at(const oct_split *s, int64_t r)
{
    return offset(s->n_cut - 1, s->cut_dim, s->cut_step, r);
}
