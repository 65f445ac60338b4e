/* SPDX-License-Identifier: Apache-2.0 */
/* The version of octet; Meson takes the SONAME from here. */
#ifndef OCTET_VERSION_H
#define OCTET_VERSION_H

#define OCT_VERSION_MAJOR 0
#define OCT_VERSION_MINOR 1
#define OCT_VERSION_PATCH 0

#endif
