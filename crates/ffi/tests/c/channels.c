/* Channels, and input and output on descriptors. */
#include "check.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

struct pair {
    int number;
    double square;
};

static void *squares(void *argument) {
    kyocho_channel_t *channel = (kyocho_channel_t *)argument;
    struct pair pair;
    for (pair.number = 1; pair.number <= 100; pair.number += 1) {
        pair.square = (double)pair.number * pair.number;
        CHECK(kyocho_channel_send(channel, &pair) == 0);
    }
    CHECK(kyocho_channel_close(channel) == 0);
    CHECK(kyocho_channel_send(channel, &pair) == EPIPE);
    CHECK(kyocho_channel_trysend(channel, &pair) == EPIPE);
    return NULL;
}

static void sums(size_t items_max) {
    kyocho_channel_t *channel;
    kyocho_t sender;
    struct pair pair;
    double sum = 0;
    int answer;
    CHECK(kyocho_channel_create(&channel, sizeof pair, items_max) == 0);
    CHECK(kyocho_spawn(&sender, NULL, squares, channel) == 0);
    while ((answer = kyocho_channel_recv(channel, &pair)) == 0) {
        CHECK(pair.square == (double)pair.number * pair.number);
        sum += pair.square;
    }
    CHECK(answer == EPIPE && sum == 338350);
    CHECK(kyocho_channel_tryrecv(channel, &pair) == EPIPE);
    CHECK(kyocho_join(sender, NULL) == 0 && kyocho_channel_destroy(channel) == 0);
}

static void *channels(void *argument) {
    kyocho_channel_t *channel = NULL;
    struct timespec soon = after_ms(2);
    char item[KYOCHO_CHANNEL_ITEM_MAX], got[KYOCHO_CHANNEL_ITEM_MAX];
    (void)argument;
    sums(0);
    sums(1);
    sums(10);
    sums(KYOCHO_CHANNEL_UNBOUNDED);
    CHECK(kyocho_channel_create(NULL, 1, 1) == EINVAL);
    CHECK(kyocho_channel_create(&channel, 0, 1) == EINVAL);
    CHECK(kyocho_channel_create(&channel, KYOCHO_CHANNEL_ITEM_MAX + 1, 1) == EINVAL);
    CHECK(kyocho_channel_create(&channel, 1, KYOCHO_CHANNEL_UNBOUNDED - 1) == EINVAL);
    CHECK(kyocho_channel_create(&channel, sizeof item, 1) == 0);
    memset(item, 'k', sizeof item);
    CHECK(kyocho_channel_tryrecv(channel, got) == EAGAIN);
    CHECK(kyocho_channel_timedrecv(channel, got, &soon) == ETIMEDOUT);
    CHECK(kyocho_channel_trysend(channel, item) == 0 && kyocho_channel_trysend(channel, item) == EAGAIN);
    CHECK(kyocho_channel_timedsend(channel, item, &soon) == ETIMEDOUT);
    CHECK(kyocho_channel_timedsend(channel, item, NULL) == EINVAL);
    CHECK(kyocho_channel_send(channel, NULL) == EINVAL && kyocho_channel_recv(channel, NULL) == EINVAL);
    CHECK(kyocho_channel_recv(NULL, got) == EINVAL);
    CHECK(kyocho_channel_recv(channel, got) == 0 && memcmp(item, got, sizeof item) == 0);
    CHECK(kyocho_channel_destroy(channel) == 0 && kyocho_channel_destroy(NULL) == EINVAL);
    return NULL;
}

static void *counts(void *argument) {
    kyocho_channel_t *channel = (kyocho_channel_t *)argument;
    for (int number = 1; number <= 50; number += 1)
        CHECK(kyocho_channel_send(channel, &number) == 0);
    return NULL;
}

static void *selects(void *argument) {
    kyocho_channel_t *odd = NULL, *even = NULL, *out = NULL;
    kyocho_t senders[2];
    struct timespec soon = after_ms(2);
    int got[2] = {0, 0}, sent = 7, received = 0, sums[2] = {0, 0};
    size_t selected = 9;
    (void)argument;
    CHECK(kyocho_channel_create(&odd, sizeof(int), 0) == 0 && kyocho_channel_create(&even, sizeof(int), 3) == 0);
    CHECK(kyocho_channel_create(&out, sizeof(int), 1) == 0);
    kyocho_arm_t arms[3] = {{odd, &got[0], KYOCHO_ARM_RECV}, {even, &got[1], KYOCHO_ARM_RECV}, {out, &sent, KYOCHO_ARM_SEND}};
    CHECK(kyocho_tryselect(arms, 2, &selected) == EAGAIN && kyocho_timedselect(arms, 2, &selected, &soon) == ETIMEDOUT);
    CHECK(selected == 9);
    CHECK(kyocho_select(arms, 3, &selected) == 0 && selected == 2);
    CHECK(kyocho_channel_recv(out, &received) == 0 && received == 7);
    CHECK(kyocho_spawn(&senders[0], NULL, counts, odd) == 0 && kyocho_spawn(&senders[1], NULL, counts, even) == 0);
    for (int turn = 0; turn < 100; turn += 1) {
        CHECK(kyocho_select(arms, 2, &selected) == 0 && selected < 2);
        sums[selected] += got[selected];
    }
    CHECK(sums[0] == 1275 && sums[1] == 1275);
    CHECK(kyocho_join(senders[0], NULL) == 0 && kyocho_join(senders[1], NULL) == 0);
    CHECK(kyocho_channel_close(even) == 0);
    CHECK(kyocho_select(arms, 2, &selected) == EPIPE && selected == 1);
    CHECK(kyocho_select(arms, 0, &selected) == EINVAL && kyocho_select(NULL, 1, &selected) == EINVAL);
    CHECK(kyocho_select(arms, KYOCHO_ARMS_MAX + 1, &selected) == EINVAL && kyocho_select(arms, 1, NULL) == EINVAL);
    arms[0].operation = 0;
    CHECK(kyocho_select(arms, 1, &selected) == EINVAL);
    arms[0].operation = KYOCHO_ARM_RECV, arms[0].item = NULL;
    CHECK(kyocho_select(arms, 1, &selected) == EINVAL);
    arms[0].item = &got[0], arms[0].channel = NULL;
    CHECK(kyocho_select(arms, 1, &selected) == EINVAL);
    CHECK(kyocho_channel_destroy(odd) == 0 && kyocho_channel_destroy(even) == 0 && kyocho_channel_destroy(out) == 0);
    return NULL;
}

static void *echoes(void *argument) {
    int listener = *(int *)argument;
    struct sockaddr_in peer;
    uint32_t bytes = sizeof peer;
    char buffer[64];
    int64_t count, connection = kyocho_accept(listener, (struct sockaddr *)&peer, &bytes);
    CHECK(connection >= 0 && bytes == sizeof peer && peer.sin_family == AF_INET);
    while ((count = kyocho_recv((int)connection, buffer, sizeof buffer, 0)) > 0)
        CHECK(kyocho_send((int)connection, buffer, (size_t)count, 0) == count);
    CHECK(count == 0 && close((int)connection) == 0);
    return NULL;
}

static void *connects(void *argument) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    struct pollfd poll[2];
    kyocho_t server;
    char buffer[16];
    (void)argument;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &bytes) == 0);
    /* No socket listens yet. */
    CHECK(kyocho_connect(client, (struct sockaddr *)&address, bytes) == -ECONNREFUSED);
    CHECK(kyocho_connect(client, NULL, bytes) == -EFAULT);
    CHECK(kyocho_connect(client, (struct sockaddr *)&address, 100000) == -EINVAL);
    close(client);
    client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(listen(listener, 1) == 0);
    CHECK(kyocho_spawn(&server, NULL, echoes, &listener) == 0);
    CHECK(kyocho_connect(client, (struct sockaddr *)&address, bytes) == 0);
    poll[0].fd = client, poll[0].events = POLLIN;
    poll[1].fd = -1, poll[1].events = POLLIN;
    CHECK(kyocho_poll(poll, 2, 0) == 0 && kyocho_poll(poll, 2, 2) == 0);
    CHECK(kyocho_write(client, "kyocho", 6) == 6);
    CHECK(kyocho_poll(poll, 2, -1) == 1 && poll[0].revents == POLLIN && poll[1].revents == 0);
    CHECK(kyocho_read(client, buffer, sizeof buffer) == 6 && memcmp(buffer, "kyocho", 6) == 0);
    CHECK(shutdown(client, SHUT_WR) == 0 && kyocho_join(server, NULL) == 0);
    CHECK(kyocho_read(client, buffer, sizeof buffer) == 0);
    close(client);
    close(listener);
    return NULL;
}

static void *reads_later(void *argument) {
    char byte = 0;
    CHECK(kyocho_read(((int *)argument)[0], &byte, 1) == 1);
    return (void *)(intptr_t)byte;
}

static void *pipes(void *argument) {
    int ends[2], full = open("/dev/full", O_WRONLY);
    kyocho_t reader;
    void *byte;
    char buffer[4];
    (void)argument;
    CHECK(pipe(ends) == 0);
    CHECK(kyocho_spawn(&reader, NULL, reads_later, ends) == 0);
    kyocho_yield();
    CHECK(kyocho_write(ends[1], "z", 1) == 1);
    CHECK(kyocho_join(reader, &byte) == 0 && byte == (void *)'z');
    CHECK(kyocho_read(-1, buffer, 1) == -EBADF && kyocho_read(987654, buffer, 1) == -EBADF);
    CHECK(kyocho_read(ends[0], NULL, 1) == -EFAULT && kyocho_write(ends[1], NULL, 1) == -EFAULT);
    CHECK(kyocho_write(ends[1], NULL, 0) == 0);
    CHECK(full < 0 || kyocho_write(full, "x", 1) == -ENOSPC);
    close(ends[0]);
    CHECK(kyocho_write(ends[1], "x", 1) == -EPIPE);
    close(ends[1]);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    close(ends[0]);
    signal(SIGPIPE, SIG_DFL);
    CHECK(kyocho_send(ends[1], "x", 1, 0) == -EPIPE);
    signal(SIGPIPE, SIG_IGN);
    close(ends[1]);
    close(full);
    CHECK(kyocho_poll(NULL, 1, 0) == -EFAULT && kyocho_poll(NULL, 0, 1) == 0);
    return NULL;
}

int main(void) {
    int ends[2];
    char byte;
    signal(SIGPIPE, SIG_IGN);
    on_processors(channels);
    on_processors(selects);
    on_processors(connects);
    on_processors(pipes);
    /* From a plain kernel thread, where they are the plain system calls. */
    CHECK(pipe(ends) == 0 && kyocho_write(ends[1], "p", 1) == 1);
    CHECK(kyocho_read(ends[0], &byte, 1) == 1 && byte == 'p');
    puts("channels: as promised");
    return 0;
}
