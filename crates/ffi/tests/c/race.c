/* Two microprocesses add to one number: with a lock, or without one if there is an argument. */
#include "check.h"

static int number;
static kyocho_mutex_t lock = KYOCHO_MUTEX_INITIALIZER;
static int is_locked = 1;

static void *add(void *argument) {
    int turn;
    for (turn = 0; turn < 100; turn += 1) {
        if (is_locked) kyocho_mutex_lock(&lock);
        number += 1;
        if (is_locked) kyocho_mutex_unlock(&lock);
        kyocho_yield();
    }
    return argument;
}

static void *add_twice(void *argument) {
    kyocho_t one, other;
    CHECK(kyocho_spawn(&one, NULL, add, NULL) == 0);
    CHECK(kyocho_spawn(&other, NULL, add, NULL) == 0);
    CHECK(kyocho_join(one, NULL) == 0);
    CHECK(kyocho_join(other, NULL) == 0);
    return argument;
}

int main(int count, char **arguments) {
    (void)arguments;
    is_locked = count < 2;
    /* On one virtual processor they never run at the same time; it is still a data race. */
    CHECK(kyocho_run(1, NULL, add_twice, NULL, NULL) == 0);
    CHECK(kyocho_run(2, NULL, add_twice, NULL, NULL) == 0);
    printf("added %s\n", number > 0 ? "up" : "nothing");
    return 0;
}
