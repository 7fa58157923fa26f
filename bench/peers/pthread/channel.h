// A channel without a buffer, of one sender and one receiver: `send_to` returns when the receiver
// has the value.
//
// Two forms, which paper 1 compares: a monitor, and a hand-over in as few system calls as Linux
// permits. `as_messages` selects the second.
#pragma once

#include "../report.h"

#include <linux/futex.h>
#include <stdatomic.h>

static void *allocate(size_t count, size_t each) {
    void *memory = calloc(count, each);
    check(memory != NULL, "out of memory");
    return memory;
}

typedef struct {
    pthread_mutex_t guard;
    pthread_cond_t offered, taken;
    bool full;
    size_t slot;
    // The record of the side that came first and waits; 0 if none does.
    atomic_uintptr_t first;
} channel;

static bool as_messages;

static channel *new_channel(void) {
    channel *made = allocate(1, sizeof *made);
    pthread_mutex_init(&made->guard, NULL);
    pthread_cond_init(&made->offered, NULL);
    pthread_cond_init(&made->taken, NULL);
    return made;
}

static void send_by_monitor(channel *to, size_t n) {
    pthread_mutex_lock(&to->guard);
    to->slot = n;
    to->full = true;
    pthread_cond_signal(&to->offered);
    while (to->full) pthread_cond_wait(&to->taken, &to->guard);
    pthread_mutex_unlock(&to->guard);
}

static size_t receive_by_monitor(channel *from) {
    pthread_mutex_lock(&from->guard);
    while (!from->full) pthread_cond_wait(&from->offered, &from->guard);
    size_t n = from->slot;
    from->full = false;
    pthread_cond_signal(&from->taken);
    pthread_mutex_unlock(&from->guard);
    return n;
}

// The side that comes first leaves its record in the channel and waits: one system call. The other
// side copies the value, in either direction, and wakes it: one system call. Neither waits again,
// so a message takes two. Linux has no call that wakes one thread and waits for another.
typedef struct {
    size_t value;
    atomic_uint done;
} record;

static bool is_first(channel *at, record *mine) {
    uintptr_t none = 0;
    if (!atomic_compare_exchange_strong(&at->first, &none, (uintptr_t)mine)) return false;
    while (!atomic_load(&mine->done)) syscall(SYS_futex, &mine->done, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return true;
}

// The record is on the other thread's stack and is gone once `done` is set. The wake is then for
// nobody.
static void complete(record *theirs) {
    atomic_store(&theirs->done, 1);
    syscall(SYS_futex, &theirs->done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void send_message(channel *to, size_t n) {
    record mine = {.value = n};
    if (is_first(to, &mine)) return;
    record *receiver = (record *)atomic_exchange(&to->first, 0);
    receiver->value = n;
    complete(receiver);
}

static size_t receive_message(channel *from) {
    record mine = {0};
    if (is_first(from, &mine)) return mine.value;
    record *sender = (record *)atomic_exchange(&from->first, 0);
    size_t n = sender->value;
    complete(sender);
    return n;
}

static void send_to(channel *to, size_t n) {
    if (as_messages) send_message(to, n);
    else send_by_monitor(to, n);
}

static size_t receive(channel *from) { return as_messages ? receive_message(from) : receive_by_monitor(from); }
