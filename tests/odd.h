/* SPDX-License-Identifier: Apache-2.0 */
/* Odd numbers in odd places: for tests of what a hostile but well-formed network does. */
#ifndef OCT_TESTS_ODD_H
#define OCT_TESTS_ODD_H

#include "base/rng.h"
#include "graph/graph.h"

int64_t odd_int(oct_rng *r);
double odd_number(oct_rng *r);

/* One element becomes odd. */
void odd_element(oct_rng *r, oct_tensor *t);

/* One number of one attribute of one node becomes odd. */
void odd_attr(oct_graph *g, oct_rng *r);

/* An attribute, an element of a constant, or a dim of an input becomes odd. */
void odd_change(oct_graph *g, oct_rng *r);

#endif
