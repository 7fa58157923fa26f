/* Producers that sleep in the kernel, and consumers that wait for their items.
 *
 * usleep is the C library's own function, without any call of the runtime. The runtime notices each
 * sleep and runs the other microprocesses. So a hundred sleeps of 10 ms take little more than the
 * five of one producer.
 *
 *     cc producer_consumer.c $(pkg-config --cflags --libs kyocho) && ./a.out
 */
#define _DEFAULT_SOURCE
#include <kyocho.h>
#include <stdio.h>
#include <unistd.h>

enum { PRODUCERS = 20, CONSUMERS = 4, ITEMS_EACH = 5, ROOM = 8 };

/* A bounded buffer with a mutex and two condition variables, as in textbooks. */
static int buffer[ROOM], held, sum;
static kyocho_mutex_t lock = KYOCHO_MUTEX_INITIALIZER;
static kyocho_cond_t not_empty = KYOCHO_COND_INITIALIZER, not_full = KYOCHO_COND_INITIALIZER;

static void put(int item) {
    kyocho_mutex_lock(&lock);
    while (held == ROOM) kyocho_cond_wait(&not_full, &lock);
    buffer[held] = item;
    held += 1;
    kyocho_cond_signal(&not_empty);
    kyocho_mutex_unlock(&lock);
}

static int get(void) {
    int item;
    kyocho_mutex_lock(&lock);
    while (held == 0) kyocho_cond_wait(&not_empty, &lock);
    held -= 1;
    item = buffer[held];
    kyocho_cond_signal(&not_full);
    kyocho_mutex_unlock(&lock);
    return item;
}

static void *produce(void *argument) {
    int number = (int)(intptr_t)argument, i;
    for (i = 0; i < ITEMS_EACH; i += 1) {
        usleep(10000);
        put(number);
    }
    return NULL;
}

static void *consume(void *argument) {
    int i;
    (void)argument;
    for (i = 0; i < PRODUCERS * ITEMS_EACH / CONSUMERS; i += 1) {
        int item = get();
        kyocho_mutex_lock(&lock);
        sum += item;
        kyocho_mutex_unlock(&lock);
    }
    return NULL;
}

static void *start(void *argument) {
    kyocho_t all[PRODUCERS + CONSUMERS];
    int i;
    (void)argument;
    for (i = 0; i < PRODUCERS + CONSUMERS; i += 1) {
        void *(*body)(void *) = i < PRODUCERS ? produce : consume;
        int error = kyocho_spawn(&all[i], NULL, body, (void *)(intptr_t)i);
        if (error != 0) return (void *)(intptr_t)error;
    }
    for (i = 0; i < PRODUCERS + CONSUMERS; i += 1) kyocho_join(all[i], NULL);
    return NULL;
}

int main(void) {
    void *failed = NULL;
    int error = kyocho_run(1, NULL, start, NULL, &failed);
    if (error != 0 || failed != NULL) {
        fprintf(stderr, "producer_consumer: error %d\n", error != 0 ? error : (int)(intptr_t)failed);
        return 1;
    }
    printf("%d items, sum %d\n", PRODUCERS * ITEMS_EACH, sum);
    return 0;
}
