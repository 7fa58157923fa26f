/* Attempts to leave the loopback network. */
#define _GNU_SOURCE
#include "attack.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define INTERFACES_MAX 8

static struct sockaddr_in v4(const char *text, int port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, text, &name.sin_addr);
    return name;
}

static struct sockaddr_in6 v6(const char *text, int port, int scope) {
    struct sockaddr_in6 name = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = scope};
    inet_pton(AF_INET6, text, &name.sin6_addr);
    return name;
}

static void must_be_bound(int socket) {
    char name[IFNAMSIZ] = "";
    socklen_t length = sizeof name;
    MUST(getsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, name, &length) == 0);
    if (strcmp(name, "lo")) {
        printf("bound to '%s'\n", name);
        exit(1);
    }
}

/* Checks that no packet of this socket reaches `name`, with each call that sends. */
static void must_not_reach(int socket, void *name, socklen_t length) {
    struct iovec part = {"x", 1};
    struct msghdr message = {name, length, &part, 1};
    struct mmsghdr many = {message};
    REFUSED_AS(ENETUNREACH, sendto(socket, "x", 1, 0, name, length));
    REFUSED_AS(ENETUNREACH, sendmsg(socket, &message, 0));
    REFUSED_AS(ENETUNREACH, sendmmsg(socket, &many, 1, 0));
    REFUSED_AS(ENETUNREACH, connect(socket, name, length));
    REFUSED_AS(EDESTADDRREQ, write(socket, "x", 1));
}

/* After a connection is dissolved, the socket has its old address, and works. */
static void undone(void) {
    struct sockaddr none = {AF_UNSPEC};
    struct sockaddr_in own = v4("127.0.0.1", 0), far = v4("192.0.2.1", 9), any = v4("0.0.0.0", 0);
    socklen_t length = sizeof own;
    int free_port = socket(AF_INET, SOCK_DGRAM, 0), receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0);
    MUST(bind(receiver, (void *)&own, length) == 0 && getsockname(receiver, (void *)&own, &length) == 0);
    for (int i = 0; i < 3; i++) {
        char byte = 0;
        MUST(connect(sender, (void *)&own, sizeof own) == 0 && write(sender, "x", 1) == 1 && read(receiver, &byte, 1) == 1 && byte == 'x');
        MUST(connect(sender, &none, sizeof none) == 0);
        must_be_bound(sender);
        must_not_reach(sender, &far, sizeof far);
        MUST(sendto(sender, "y", 1, 0, (void *)&own, sizeof own) == 1 && read(receiver, &byte, 1) == 1 && byte == 'y');
    }
    /* A socket that is bound to all addresses of the host outside. */
    int wide = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in bound;
    length = sizeof bound;
    MUST(bind(free_port, (void *)&any, sizeof any) == 0 && getsockname(free_port, (void *)&any, &length) == 0);
    close(free_port), length = sizeof bound;
    MUST(bind(wide, (void *)&any, sizeof any) == 0 && connect(wide, (void *)&own, sizeof own) == 0 && connect(wide, &none, sizeof none) == 0);
    must_be_bound(wide);
    MUST(getsockname(wide, (void *)&bound, &length) == 0 && bound.sin_port != 0);
    bound.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char byte = 0;
    MUST(sendto(sender, "z", 1, 0, (void *)&bound, sizeof bound) == 1 && read(wide, &byte, 1) == 1 && byte == 'z');
    int stream = socket(AF_INET, SOCK_STREAM, 0);
    MUST(connect(stream, &none, sizeof none) == 0);
    must_be_bound(stream);
    REFUSED_AS(ENETUNREACH, connect(stream, (void *)&far, sizeof far));
    REFUSED_AS(EADDRNOTAVAIL, bind(stream, (void *)&far, sizeof far));
}

/* Scopes, and addresses of one family written as those of the other. */
static void scopes(void) {
    int socket6 = socket(AF_INET6, SOCK_DGRAM, 0);
    if (socket6 < 0 && errno == EAFNOSUPPORT) return;
    static const char *far[] = {"fe80::1", "ff02::1", "ff02::fb", "2001:db8::1", "fd00::1", "::ffff:192.0.2.1"};
    for (unsigned i = 0; i < sizeof far / sizeof *far; i++)
        for (int scope = 0; scope <= INTERFACES_MAX; scope++) {
            struct sockaddr_in6 name = v6(far[i], 9, scope);
            must_not_reach(socket6, &name, sizeof name);
        }
    for (unsigned i = 0; i < sizeof far / sizeof *far; i++)
        for (int scope = 0; scope <= INTERFACES_MAX; scope++) {
            struct sockaddr_in6 name = v6(far[i], 9, scope);
            REFUSED_AS(EADDRNOTAVAIL, bind(socket6, (void *)&name, sizeof name));
            must_be_bound(socket6);
        }
    struct sockaddr_in plain = v4("192.0.2.1", 9), group = v4("224.0.0.1", 9), all = v4("255.255.255.255", 9);
    REFUSED_AS(ENETUNREACH, sendto(socket6, "x", 1, 0, (void *)&plain, sizeof plain));
    int socket4 = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
    MUST(setsockopt(socket4, SOL_SOCKET, SO_BROADCAST, &on, sizeof on) == 0);
    must_not_reach(socket4, &plain, sizeof plain);
    must_not_reach(socket4, &group, sizeof group);
    must_not_reach(socket4, &all, sizeof all);
}

/* Options that choose an interface, join a group, choose a route, or attach a filter. */
static void options(void) {
    char value[256] = {0};
    static const struct {
        int level, name;
    } list[] = {{SOL_SOCKET, SO_BINDTODEVICE}, {SOL_SOCKET, 62 /* SO_BINDTOIFINDEX */}, {SOL_SOCKET, SO_MARK}, {SOL_SOCKET, SO_ATTACH_FILTER},
                {SOL_SOCKET, SO_DETACH_FILTER}, {SOL_SOCKET, SO_LOCK_FILTER}, {SOL_SOCKET, 50 /* SO_ATTACH_BPF */}, {SOL_SOCKET, 51}, {SOL_SOCKET, 52},
                {IPPROTO_IP, IP_OPTIONS}, {IPPROTO_IP, IP_MULTICAST_IF}, {IPPROTO_IP, IP_ADD_MEMBERSHIP}, {IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP},
                {IPPROTO_IP, IP_UNICAST_IF}, {IPPROTO_IP, IP_MSFILTER}, {IPPROTO_IP, MCAST_JOIN_GROUP}, {IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP},
                {IPPROTO_IP, MCAST_MSFILTER}, {IPPROTO_IP, 19 /* IP_TRANSPARENT */}, {IPPROTO_IP, 16 /* IP_IPSEC_POLICY */}, {IPPROTO_IP, 17 /* IP_XFRM_POLICY */},
                {IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP}, {IPPROTO_IPV6, IPV6_JOIN_ANYCAST}, {IPPROTO_IPV6, IPV6_MULTICAST_IF}, {IPPROTO_IPV6, 76 /* IPV6_UNICAST_IF */},
                {IPPROTO_IPV6, IPV6_PKTINFO}, {IPPROTO_IPV6, IPV6_RTHDR}, {IPPROTO_IPV6, IPV6_HOPOPTS}, {IPPROTO_IPV6, IPV6_NEXTHOP},
                {IPPROTO_IPV6, MCAST_JOIN_GROUP}, {IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP}, {IPPROTO_IPV6, 1 /* IPV6_ADDRFORM */}, {IPPROTO_UDP, 100 /* UDP_ENCAP */}};
    for (unsigned i = 0; i < sizeof list / sizeof *list; i++)
        for (int family = AF_INET; family == AF_INET || family == AF_INET6; family += AF_INET6 - AF_INET) {
            int datagrams = socket(family, SOCK_DGRAM, 0);
            if (datagrams < 0) continue;
            REFUSED_AS(EPERM, setsockopt(datagrams, list[i].level, list[i].name, value, sizeof value));
            must_be_bound(datagrams);
            close(datagrams);
        }
    struct ip_mreqn group = {{htonl(0xe0000142)}, {0}, 0};
    int datagrams = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
    for (group.imr_ifindex = 0; group.imr_ifindex <= INTERFACES_MAX; group.imr_ifindex++)
        REFUSED_AS(EPERM, setsockopt(datagrams, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group));
    /* Options about the treatment of packets are available. */
    MUST(setsockopt(datagrams, IPPROTO_IP, IP_TTL, &(int){9}, sizeof on) == 0 && setsockopt(datagrams, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
    MUST(setsockopt(datagrams, IPPROTO_IP, IP_RECVERR, &on, sizeof on) == 0 && setsockopt(datagrams, SOL_SOCKET, SO_RCVBUF, &(int){9999}, sizeof on) == 0);
}

/* Kinds of sockets that receive or send packets of others, with each family. */
static void kinds(int is_loopback) {
    for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET) {
        REFUSED_AS(EPERM, socket(family, SOCK_RAW, IPPROTO_ICMP));
        REFUSED_AS(EPERM, socket(family, 10 /* SOCK_PACKET */, htons(3)));
        REFUSED_AS(ESOCKTNOSUPPORT, socket(family, SOCK_RDM, 0));
        REFUSED_AS(ESOCKTNOSUPPORT, socket(family, SOCK_SEQPACKET, 0));
        if (!is_loopback) continue;
        static const int protocols[] = {IPPROTO_ICMP, IPPROTO_ICMPV6, 132 /* SCTP */, 33 /* DCCP */, 136 /* UDPLITE */, 262 /* MPTCP */, 115 /* L2TP */};
        for (unsigned i = 0; i < sizeof protocols / sizeof *protocols; i++) {
            REFUSED_AS(EPROTONOSUPPORT, socket(family, SOCK_STREAM, protocols[i]));
            REFUSED_AS(EPROTONOSUPPORT, socket(family, SOCK_DGRAM, protocols[i]));
        }
    }
    REFUSED_AS(EAFNOSUPPORT, socket(AF_PACKET, SOCK_RAW, 0));
    REFUSED_AS(EAFNOSUPPORT, socket(AF_PACKET, SOCK_DGRAM, 0));
}

int main(int count, char **words) {
    const char *attack = words[1];
    if (!strcmp(attack, "undone")) undone();
    else if (!strcmp(attack, "scopes")) scopes();
    else if (!strcmp(attack, "options")) options();
    else if (!strcmp(attack, "kinds")) kinds(words[2] != 0);
    else return 2;
    puts("held");
    return 0;
}
