/* Gates: a server and its client, in one process. */
#include "check.h"

#include <unistd.h>

static char path[64];

static int64_t serve(void *argument, uint32_t method, const void *request, size_t request_bytes, void *reply) {
    switch (method) {
    case 0:
        memcpy(reply, request, request_bytes);
        return (int64_t)request_bytes;
    case 1:
        return -ENOTSUP;
    case 2:
        CHECK(kyocho_poll(NULL, 0, 50) == 0);
        return 0;
    case 3:
        return KYOCHO_GATE_BYTES_MAX + 1;
    default:
        memcpy(reply, argument, strlen((const char *)argument));
        return (int64_t)strlen((const char *)argument);
    }
}

static void bad_input(kyocho_gate_t *gate) {
    static char longer[KYOCHO_GATE_BYTES_MAX + 1];
    kyocho_gate_t *other = NULL;
    kyocho_gate_server_t *server = NULL;
    char reply[4];
    CHECK(kyocho_gate_connect(NULL, path) == EINVAL);
    CHECK(kyocho_gate_connect(&other, NULL) == EINVAL);
    CHECK(kyocho_gate_connect(&other, "/nonexistent/gate") == ENOENT);
    CHECK(kyocho_gate_serve(&server, path, serve, NULL) == EADDRINUSE);
    CHECK(kyocho_gate_serve(&server, path, NULL, NULL) == EINVAL);
    CHECK(kyocho_gate_call(NULL, 0, NULL, 0, NULL, 0) == -EINVAL);
    CHECK(kyocho_gate_call(gate, 0, NULL, 1, reply, 4) == -EINVAL);
    CHECK(kyocho_gate_call(gate, 0, "five", 5, NULL, 4) == -EINVAL);
    CHECK(kyocho_gate_call(gate, 0, longer, sizeof longer, reply, 4) == -EMSGSIZE);
    CHECK(kyocho_gate_call(gate, 0, "five", 5, reply, 4) == -EMSGSIZE);
    CHECK(kyocho_gate_timedcall(gate, 0, NULL, 0, NULL, 0, NULL) == -EINVAL);
    CHECK(kyocho_gate_destroy(NULL) == EINVAL && kyocho_gate_server_destroy(NULL) == EINVAL);
}

static void *gates(void *argument) {
    static char text[] = "as argued";
    static char whole[KYOCHO_GATE_BYTES_MAX], back[KYOCHO_GATE_BYTES_MAX];
    kyocho_gate_server_t *server = NULL;
    kyocho_gate_t *gate = NULL;
    struct timespec soon;
    (void)argument;
    CHECK(kyocho_gate_serve(&server, path, serve, text) == 0);
    CHECK(kyocho_gate_connect(&gate, path) == 0);
    memset(whole, 7, sizeof whole);
    CHECK(kyocho_gate_call(gate, 0, whole, sizeof whole, back, sizeof back) == (int64_t)sizeof whole);
    CHECK(memcmp(whole, back, sizeof whole) == 0);
    CHECK(kyocho_gate_call(gate, 0, NULL, 0, NULL, 0) == 0);
    CHECK(kyocho_gate_call(gate, 1, NULL, 0, NULL, 0) == -ENOTSUP);
    CHECK(kyocho_gate_call(gate, 3, NULL, 0, NULL, 0) == -EREMOTEIO);
    CHECK(kyocho_gate_call(gate, 9, NULL, 0, back, sizeof back) == 9 && memcmp(back, text, 9) == 0);
    soon = after_ms(2);
    CHECK(kyocho_gate_timedcall(gate, 2, NULL, 0, NULL, 0, &soon) == -ETIMEDOUT);
    bad_input(gate);
    CHECK(kyocho_gate_server_destroy(server) == 0);
    CHECK(kyocho_gate_call(gate, 0, NULL, 0, NULL, 0) == -EPIPE);
    CHECK(kyocho_gate_destroy(gate) == 0);
    return NULL;
}

int main(void) {
    kyocho_gate_t *gate = NULL;
    snprintf(path, sizeof path, "/tmp/kyocho-gate-c-%ld", (long)getpid());
    on_processors(gates);
    CHECK(kyocho_gate_connect(&gate, path) == EPERM);
    puts("gates: as promised");
    return 0;
}
