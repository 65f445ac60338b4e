/* SPDX-License-Identifier: Apache-2.0 */
/* The version of octet; Meson takes the SONAME from here. */
#ifndef OCTET_VERSION_H
#define OCTET_VERSION_H

#define OCT_VERSION_MAJOR 0
#define OCT_VERSION_MINOR 1
#define OCT_VERSION_PATCH 0

/* One number that grows with each version, to compare with oct_version_number(). */
#define OCT_VERSION_NUMBER (OCT_VERSION_MAJOR * 10000 + OCT_VERSION_MINOR * 100 + OCT_VERSION_PATCH)

#endif
