/* A gate: a microprocess calls a service, here of its own process, for a sum.
 *
 *     cc gate.c $(pkg-config --cflags --libs kyocho) && ./a.out
 */
#include <kyocho.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SUM };

static int64_t serve(void *argument, uint32_t method, const void *request, size_t request_bytes, void *reply) {
    const unsigned char *bytes = (const unsigned char *)request;
    uint64_t sum = 0;
    size_t i;
    (void)argument;
    if (method != SUM) return -1;
    for (i = 0; i < request_bytes; i += 1) sum += bytes[i];
    memcpy(reply, &sum, sizeof sum);
    return sizeof sum;
}

static void *start(void *path) {
    kyocho_gate_server_t *server;
    kyocho_gate_t *gate;
    unsigned char numbers[100];
    uint64_t sum = 0;
    size_t i;
    for (i = 0; i < sizeof numbers; i += 1) numbers[i] = (unsigned char)(i + 1);
    if (kyocho_gate_serve(&server, (const char *)path, serve, NULL) != 0) return NULL;
    if (kyocho_gate_connect(&gate, (const char *)path) == 0) {
        if (kyocho_gate_call(gate, SUM, numbers, sizeof numbers, &sum, sizeof sum) == sizeof sum)
            printf("the sum of 1 to 100 is %lu\n", (unsigned long)sum);
        kyocho_gate_destroy(gate);
    }
    kyocho_gate_server_destroy(server);
    return NULL;
}

int main(void) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/kyocho-gate-example-%ld", (long)getpid());
    return kyocho_run(0, NULL, start, path, NULL);
}
