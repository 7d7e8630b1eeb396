/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file version.h
 * The version of the UCT interface that these headers describe. It is the version of the
 * interface, not of the library: uct.h compiled against one minor version works with a library of
 * another one, because structures grow at their end and carry a field_mask.
 */
#ifndef UCT_VERSION_H_
#define UCT_VERSION_H_

#define UCT_VERNO_MAJOR 1
#define UCT_VERNO_MINOR 22
#define UCT_VERNO_PATCH 0
#define UCT_VERNO_EXTRA ""
#define UCT_VERNO_STRING "1.22.0"
#define UCT_SCM_VERSION ""
#define UCT_SCM_BRANCH ""

#define UCT_MINOR_BIT (16UL)
#define UCT_MAJOR_BIT (24UL)

/** Packs a (major, minor) pair in one number, so that versions compare with < and >. */
#define UCT_VERSION(_major, _minor) (((_major) << UCT_MAJOR_BIT) | ((_minor) << UCT_MINOR_BIT))

/** The version above, packed. */
#define UCT_API ((1L << UCT_MAJOR_BIT) | (22L << UCT_MINOR_BIT))

#endif
