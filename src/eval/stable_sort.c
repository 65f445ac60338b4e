/* SPDX-License-Identifier: Apache-2.0 */
/* A stable sort: short runs by insertion, then merged. */
#include "eval/stable_sort.h"

#include <stdbool.h>
#include <string.h>

#define RUN 16

static bool before(const oct_ranked *a, const oct_ranked *b)
{
    return a->group < b->group || (a->group == b->group && a->score > b->score);
}

static void insert_all(oct_ranked *a, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const oct_ranked item = a[i];
        size_t k = i;

        for (; k > 0 && before(&item, &a[k - 1]); k--)
            a[k] = a[k - 1];
        a[k] = item;
    }
}

/* a[0, mid) and a[mid, n), both sorted, into out. */
static void merge(const oct_ranked *a, size_t mid, size_t n, oct_ranked *out)
{
    size_t left = 0, right = mid;

    if (mid >= n || !before(&a[mid], &a[mid - 1])) {
        memcpy(out, a, n * sizeof(*a));
        return;
    }
    while (left < mid && right < n)
        *out++ = before(&a[right], &a[left]) ? a[right++] : a[left++];
    memcpy(out, a + left, (mid - left) * sizeof(*a));
    memcpy(out + (mid - left), a + right, (n - right) * sizeof(*a));
}

void oct_rank(oct_ranked *items, oct_ranked *work, size_t n)
{
    oct_ranked *from = items, *to = work, *swap;

    for (size_t i = 0; i < n; i += RUN)
        insert_all(items + i, n - i < RUN ? n - i : RUN);
    for (size_t width = RUN; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width)
            merge(from + i, n - i < width ? n - i : width, n - i < 2 * width ? n - i : 2 * width,
                  to + i);
        swap = from;
        from = to;
        to = swap;
    }
    if (from != items) memcpy(items, from, n * sizeof(*items));
}
