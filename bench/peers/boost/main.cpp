// The thread workloads on Boost.Fiber, one kernel thread, its round robin.
//
// Boost.Fiber has no semaphore; one is built of its mutex and condition variable, as its users do.
#include "../report.h"

#include <atomic>
#include <boost/fiber/all.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace fibers = boost::fibers;
using namespace std::chrono_literals;

// Fibers share one kernel thread and switch only in calls of the library: plain variables count.
template <typename Body> static fibers::fiber spawn(Body &&body) {
    return fibers::fiber(fibers::launch::post, std::allocator_arg, fibers::fixedsize_stack(16 * 1024),
                         std::forward<Body>(body));
}

static void emit_checked(const char *bench, double value, const char *unit,
                         const std::string &fields, const std::string &done) {
    emit(bench, value, unit, (fields + "\"check\":\"" + done + "\"").c_str());
}

static void spawn_join(size_t iters) {
    size_t ran = 0;
    auto round = [&](size_t n) {
        for (size_t i = 0; i < n; i++) spawn([&] { ran++; }).join();
    };
    round(iters / 10);
    ran = 0;
    uint64_t start = now_ns();
    round(iters);
    uint64_t elapsed = now_ns() - start;
    check(ran == iters, "%zu of %zu threads ran", ran, iters);
    emit_checked("spawn_join", double(elapsed) / double(iters), "ns", "", std::to_string(ran) + " threads ran");
}

static void yields(size_t iters) {
    size_t last = 0, turns = 0;
    auto round = [&](size_t n) {
        auto loop = [&](size_t me) {
            for (size_t i = 0; i < n; i++) {
                if (last != me) {
                    last = me;
                    turns++;
                }
                boost::this_fiber::yield();
            }
        };
        auto first = spawn([&] { loop(1); }), second = spawn([&] { loop(2); });
        first.join();
        second.join();
    };
    round(iters / 10);
    turns = 0;
    uint64_t start = now_ns();
    round(iters);
    uint64_t elapsed = now_ns() - start;
    check(turns >= iters, "only %zu of %zu yields switched", turns, 2 * iters);
    emit_checked("yield", double(elapsed) / double(2 * iters), "ns",
                 "\"turns_per_yield\":" + std::to_string(double(turns) / double(2 * iters)) + ",",
                 std::to_string(turns) + " turns");
}

using channel = fibers::unbuffered_channel<size_t>;

static void rendezvous(size_t iters) {
    channel there, back;
    auto echo = spawn([&] {
        for (size_t n : there) back.push(n + 1);
    });
    size_t n = 0;
    uint64_t elapsed = 0;
    for (size_t count : {iters / 10, iters}) {
        n = 0;
        uint64_t start = now_ns();
        for (size_t i = 0; i < count; i++) {
            there.push(n);
            n = back.value_pop();
        }
        elapsed = now_ns() - start;
    }
    there.close();
    echo.join();
    check(n == iters, "the echo counted to %zu, not %zu", n, iters);
    emit_checked("rendezvous", double(elapsed) / double(iters), "ns", "", std::to_string(n) + " round trips");
}

// One source, one filter a prime; the caller receives the primes. 0 ends a stream.
static std::pair<size_t, size_t> sieve_run(size_t limit) {
    size_t messages = 0, primes = 0;
    auto send = [&](channel &to, size_t n) {
        messages++;
        to.push(n);
    };
    std::vector<fibers::fiber> threads;
    auto from = std::make_shared<channel>();
    threads.push_back(spawn([&, to = from] {
        for (size_t n = 2; n <= limit; n++) send(*to, n);
        send(*to, 0);
    }));
    while (size_t prime = from->value_pop()) {
        primes++;
        auto to = std::make_shared<channel>();
        threads.push_back(spawn([&, from, to, prime] {
            for (;;) {
                size_t n = from->value_pop();
                if (n == 0 || n % prime != 0) send(*to, n);
                if (n == 0) return;
            }
        }));
        from = to;
    }
    for (auto &thread : threads) thread.join();
    return {primes, messages};
}

static void sieve(size_t limit) {
    sieve_run(limit);
    uint64_t start = now_ns();
    auto [primes, messages] = sieve_run(limit);
    emit_sieve("sieve", limit, now_ns() - start, primes, messages);
}

class semaphore {
    fibers::mutex guard;
    fibers::condition_variable released;
    size_t count;

  public:
    explicit semaphore(size_t count) : count(count) {}

    void acquire() {
        std::unique_lock<fibers::mutex> held(guard);
        released.wait(held, [this] { return count > 0; });
        count--;
    }

    void release() {
        {
            std::unique_lock<fibers::mutex> held(guard);
            count++;
        }
        released.notify_one();
    }
};

static void semaphores(size_t producers, size_t consumers, size_t limit_ms) {
    semaphore empty(SLOTS), full(0);
    fibers::mutex guard;
    uint64_t ring[SLOTS], head = 0, tail = 0, produced = 0, consumed = 0, items = 0;
    auto put = [&](uint64_t item) {
        empty.acquire();
        {
            std::unique_lock<fibers::mutex> held(guard);
            ring[head++ % SLOTS] = item;
        }
        full.release();
    };
    auto get = [&] {
        full.acquire();
        uint64_t item;
        {
            std::unique_lock<fibers::mutex> held(guard);
            item = ring[tail++ % SLOTS];
        }
        empty.release();
        return item;
    };
    bool stop = false;
    std::vector<fibers::fiber> makers, takers;
    uint64_t start = now_ns();
    for (size_t first = 1; first <= producers; first++)
        makers.push_back(spawn([&, item = uint64_t(first)]() mutable {
            for (size_t n = 1; !stop; n++) {
                put(item);
                produced += item;
                item += producers;
                if (n % 64 == 0 && now_ns() - start >= limit_ms * 1000000) stop = true;
            }
        }));
    for (size_t i = 0; i < consumers; i++)
        takers.push_back(spawn([&] {
            while (uint64_t item = get()) {
                consumed += item;
                items++;
            }
        }));
    for (auto &maker : makers) maker.join();
    for (size_t i = 0; i < consumers; i++) put(0);
    for (auto &taker : takers) taker.join();
    emit_semaphores(producers, consumers, now_ns() - start, produced, consumed, items);
}

static void parked(size_t count) {
    fibers::mutex guard;
    fibers::condition_variable gate;
    bool open = false;
    size_t waiting = 0;
    std::vector<fibers::fiber> threads;
    size_t before = memory_bytes();
    for (size_t i = 0; i < count; i++)
        threads.push_back(spawn([&] {
            std::unique_lock<fibers::mutex> held(guard);
            waiting++;
            gate.wait(held, [&] { return open; });
        }));
    while (waiting < count) boost::this_fiber::yield();
    size_t after = memory_bytes();
    {
        std::unique_lock<fibers::mutex> held(guard);
        open = true;
    }
    gate.notify_all();
    for (auto &thread : threads) thread.join();
    emit_parked(count, before, after);
}

static void blocked(size_t count) {
    bool stop = false;
    uint64_t gap_ns = 0;
    size_t ticks = 0;
    auto ticker = spawn([&] {
        uint64_t before = now_ns();
        while (!stop) {
            boost::this_fiber::sleep_for(1ms);
            uint64_t now = now_ns();
            gap_ns = std::max(gap_ns, now - before);
            before = now;
            ticks++;
        }
    });
    boost::this_fiber::yield();
    std::vector<fibers::fiber> threads;
    uint64_t start = now_ns();
    for (size_t i = 0; i < count; i++) threads.push_back(spawn([] { raw_nanosleep(); }));
    for (auto &thread : threads) thread.join();
    uint64_t elapsed = now_ns() - start;
    stop = true;
    ticker.join();
    emit_blocked(count, elapsed, gap_ns, ticks);
}

static void page_fault(size_t pages) {
    static struct stall stall;
    if (!stall_begin(&stall, pages)) return;
    auto neighbour = spawn([] {
        while (!stall_see(&stall)) boost::this_fiber::yield();
    });
    for (size_t page = 0; page < pages; page++) {
        stall_touch(&stall, page);
        while (stall.began_ns != 0) boost::this_fiber::yield();
    }
    neighbour.join();
    emit_stall(&stall);
}

static void preempted(size_t samples) {
    bool stop = false;
    std::atomic<uint64_t> spins{0};
    auto hog = spawn([&] {
        uint64_t start = now_ns();
        while (!stop && now_ns() - start < SPIN_NS) spins.fetch_add(1, std::memory_order_relaxed);
        stop = true;
    });
    std::vector<double> overshoot_ms;
    while (overshoot_ms.size() < samples && !stop) {
        uint64_t before = now_ns();
        boost::this_fiber::sleep_for(std::chrono::nanoseconds(NAP_NS));
        overshoot_ms.push_back(double(now_ns() - before - NAP_NS) / 1e6);
    }
    stop = true;
    hog.join();
    emit_overshoot("preempted", overshoot_ms.data(), overshoot_ms.size(), "round robin");
}

int main(int argc, char **argv) {
    if (argc < 2) usage();
    std::string bench = argv[1];
    auto argument = [&](int at, size_t otherwise) { return number(argc, argv, at, otherwise); };
    if (bench == "spawn_join") spawn_join(argument(2, 1000000));
    else if (bench == "yield") yields(argument(2, 3000000));
    else if (bench == "rendezvous") rendezvous(argument(2, 1000000));
    else if (bench == "sieve") sieve(argument(2, 700));
    else if (bench == "semaphores") semaphores(argument(2, 2), argument(3, 2), argument(4, 500));
    else if (bench == "parked") parked(argument(2, 100000));
    else if (bench == "blocked") blocked(argument(2, 1000));
    else if (bench == "page_fault") page_fault(argument(2, 200));
    else if (bench == "preempted") preempted(argument(2, 100));
    else if (bench == "urgent") unsupported("urgent", "a priority scheduler can be written, but nothing preempts");
    else if (bench == "priorities" || bench == "priorities_alone" || bench == "priorities_plain")
        unsupported(bench.c_str(), "a priority scheduler knows nothing of other processes");
    else if (bench == "sieve_messages") unsupported("sieve_messages", "its sieve passes messages already");
    else if (bench == "address_space") unsupported("address_space", "only the kernel makes address spaces");
    else if (bench == "version") printf("Boost.Fiber %d.%d\n", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000);
    else usage();
}
