/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the participants of Lamport's algorithm share with each other and with
 * the daemon that cleans up after the dead.
 *
 * A participant is a thread, of any process that has the memory and the pipe.
 * It asks the daemon for a slot. A participant that waits for long asks the
 * daemon to check the slot that it waits for. A slot is known by a number from
 * 1; 0 in x and y means no participant.
 */
#ifndef LAMPORT_H
#define LAMPORT_H

#define LAMPORT_SLOTS	160

struct lamport {
	volatile int x, y, b[LAMPORT_SLOTS + 1];
	/* The daemon alone writes the rest. A slot without an owner is free. */
	volatile int owner[LAMPORT_SLOTS + 1];
	volatile int highest;	/* slot that was ever given away */
	volatile int answers;	/* a futex: counts answers to requests for a slot */
	volatile int cleaned;	/* participants that died while engaged, and were cleaned up after */
};

/* Written to the pipe in one piece. */
struct lamport_request {
	int thread;		/* the kernel's number of the thread that wants a slot; 0: */
	int suspect;		/* the slot that is to be checked */
};

extern struct lamport *lamport;

/* The section itself, around anything. */
void lamport_begin(void);
void lamport_end(void);

/* Serves requests until no participant can write any more. */
void lamport_serve(struct lamport *shared, int requests);

#endif
