/* Paper 1's sieve of Eratosthenes: each prime is a microprocess that filters out its multiples.
 *
 *     cc sieve.c $(pkg-config --cflags --libs kyocho) && ./a.out 700
 */
#include <kyocho.h>
#include <stdio.h>
#include <stdlib.h>

struct filter {
    int prime;
    kyocho_channel_t *in, *out;
};

static void stop_if(int error, const char *what) {
    if (error != 0) {
        fprintf(stderr, "sieve: %s: error %d\n", what, error);
        exit(1);
    }
}

static kyocho_channel_t *new_channel(void) {
    kyocho_channel_t *channel;
    stop_if(kyocho_channel_create(&channel, sizeof(int), 0), "a channel");
    return channel;
}

static void spawn(void *(*start)(void *), void *argument) {
    kyocho_t one;
    stop_if(kyocho_spawn(&one, NULL, start, argument), "a microprocess");
    stop_if(kyocho_detach(one), "detaching");
}

/* Passes on numbers that its prime does not divide. The end of its input ends it and the next
 * filter. */
static void *filter(void *argument) {
    struct filter *mine = argument;
    int number;
    while (kyocho_channel_recv(mine->in, &number) == 0)
        if (number % mine->prime != 0) kyocho_channel_send(mine->out, &number);
    kyocho_channel_close(mine->out);
    kyocho_channel_destroy(mine->in);
    free(mine);
    return NULL;
}

struct source {
    int limit;
    kyocho_channel_t *out;
};

static void *numbers(void *argument) {
    struct source *source = argument;
    int number;
    for (number = 2; number <= source->limit; number += 1)
        kyocho_channel_send(source->out, &number);
    kyocho_channel_close(source->out);
    return NULL;
}

static void *sieve(void *argument) {
    kyocho_channel_t *in = new_channel();
    struct source source;
    int prime, count = 0, largest = 0;
    source.limit = *(int *)argument;
    source.out = in;
    spawn(numbers, &source);
    while (kyocho_channel_recv(in, &prime) == 0) {
        struct filter *next = malloc(sizeof *next);
        if (next == NULL) stop_if(12, "memory");
        next->prime = prime;
        next->in = in;
        next->out = in = new_channel();
        spawn(filter, next);
        count += 1;
        largest = prime;
    }
    kyocho_channel_destroy(in);
    printf("%d primes up to %d, the largest %d\n", count, source.limit, largest);
    return NULL;
}

int main(int argc, char **argv) {
    int limit = argc > 1 ? atoi(argv[1]) : 700;
    stop_if(kyocho_run(0, NULL, sieve, &limit, NULL), "the run");
    return 0;
}
