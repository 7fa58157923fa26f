// C++: a lambda as the start function, and a statically initialised object.
#include <cstdio>
#include <kyocho.h>

static kyocho_mutex_t lock = KYOCHO_MUTEX_INITIALIZER;
static long sum = 0;

int main() {
    auto start = [](void *) -> void * {
        kyocho_t all[100];
        for (long i = 0; i < 100; i += 1) {
            auto add = [](void *number) -> void * {
                kyocho_mutex_lock(&lock);
                sum += reinterpret_cast<long>(number);
                kyocho_mutex_unlock(&lock);
                return nullptr;
            };
            if (kyocho_spawn(&all[i], nullptr, add, reinterpret_cast<void *>(i + 1)) != 0) return &sum;
        }
        for (kyocho_t one : all)
            if (kyocho_join(one, nullptr) != 0) return &sum;
        return nullptr;
    };
    void *failed = nullptr;
    if (kyocho_run(2, nullptr, start, nullptr, &failed) != 0 || failed != nullptr) return 1;
    std::printf("%ld\n", sum);
    return 0;
}
