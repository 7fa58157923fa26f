/* A first program: ten microprocesses send squares through a channel.
 *
 *     cc first.c $(pkg-config --cflags --libs kyocho) -o first && ./first
 */
#include <kyocho.h>
#include <stdio.h>

enum { COUNT = 10 };

static kyocho_channel_t *squares;

static void *send_square(void *argument) {
    int n = (int)(intptr_t)argument, square = n * n;
    kyocho_channel_send(squares, &square);
    return NULL;
}

static void *start(void *argument) {
    kyocho_t senders[COUNT];
    int i, square, sum = 0;
    (void)argument;
    if (kyocho_channel_create(&squares, sizeof square, 0) != 0) return NULL;
    for (i = 0; i < COUNT; i += 1) {
        void *number = (void *)(intptr_t)(i + 1);
        if (kyocho_spawn(&senders[i], NULL, send_square, number) != 0) return NULL;
    }
    for (i = 0; i < COUNT && kyocho_channel_recv(squares, &square) == 0; i += 1) sum += square;
    for (i = 0; i < COUNT; i += 1) kyocho_join(senders[i], NULL);
    kyocho_channel_destroy(squares);
    printf("the sum of ten squares is %d\n", sum);
    return NULL;
}

int main(void) {
    return kyocho_run(0, NULL, start, NULL, NULL);
}
