/* SPDX-License-Identifier: GPL-2.0 OR MIT OR Apache-2.0 */
/* Where the procedures of the page are: for the module, its users, the tests. */
#ifndef TST_SLOTS_H
#define TST_SLOTS_H

#define TST_SLOT_BYTES		64

#define TST_SLOT		(0 * TST_SLOT_BYTES)
#define TST_CAS_SLOT		(1 * TST_SLOT_BYTES)
#define TST_FETCH_ADD_SLOT	(2 * TST_SLOT_BYTES)

/* From the start of a slot to the return whose delay slot is its store. */
#define TST_COMMIT		24
#define TST_CAS_COMMIT		24
#define TST_FETCH_ADD_COMMIT	16

#endif
