/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of rows, by subject. Each ends with a row without a name. */
#ifndef OCT_TESTS_RANDOM_ROWS_H
#define OCT_TESTS_RANDOM_ROWS_H

#include "tests/random/net.h"

extern const net_row net_layer_rows[];  /* convolutions, poolings, norms */
extern const net_row net_shape_rows[];  /* what moves, joins and cuts data */
extern const net_row net_number_rows[]; /* elementwise, reductions, products */
extern const net_row net_code_rows[];   /* quantized layers */
extern const net_row net_corner_rows[]; /* single Q and DQ nodes */

#endif
