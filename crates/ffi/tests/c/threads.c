/* Microprocesses: attributes, results, names, priorities, specific values. */
#include "check.h"

#include <unistd.h>

static void *twice(void *argument) { return (void *)(2 * (uintptr_t)argument); }

static void *exits(void *argument) {
    char deep[512];
    memset(deep, 1, sizeof deep);
    if (deep[9] == 1) kyocho_exit(argument);
    return NULL;
}

static void *joins_main(void *argument) {
    kyocho_t *first = (kyocho_t *)argument;
    return (void *)(uintptr_t)kyocho_join(*first, NULL);
}

static void *waits(void *argument) {
    kyocho_sem_t *go = (kyocho_sem_t *)argument;
    CHECK(kyocho_sem_wait(go) == 0);
    return NULL;
}

static void *detaches_itself(void *argument) {
    CHECK(kyocho_detach(kyocho_self()) == 0);
    CHECK(kyocho_detach(kyocho_self()) == EINVAL);
    CHECK(kyocho_sem_post((kyocho_sem_t *)argument) == 0);
    return NULL;
}

static void *lives(void *argument) {
    kyocho_t one, first = kyocho_self(), all[500];
    kyocho_sem_t go;
    void *result;
    int level;
    size_t i;
    (void)argument;
    CHECK(first != 0);
    CHECK(kyocho_spawn(&one, NULL, twice, (void *)21) == 0);
    CHECK(one != 0 && one != first);
    CHECK(kyocho_join(one, &result) == 0 && result == (void *)42);
    CHECK(kyocho_join(one, &result) == ESRCH);
    CHECK(kyocho_detach(one) == ESRCH);
    CHECK(kyocho_join(first, NULL) == EDEADLK);
    CHECK(kyocho_spawn(&one, NULL, joins_main, &first) == 0);
    CHECK(kyocho_join(one, &result) == 0 && result == (void *)EINVAL);
    CHECK(kyocho_spawn(&one, NULL, exits, (void *)7) == 0);
    CHECK(kyocho_join(one, &result) == 0 && result == (void *)7);
    CHECK(kyocho_spawn(NULL, NULL, twice, NULL) == EINVAL);
    CHECK(kyocho_spawn(&one, NULL, NULL, NULL) == EINVAL);
    CHECK(kyocho_sem_init(&go, 0) == 0);
    CHECK(kyocho_spawn(&one, NULL, waits, &go) == 0);
    CHECK(kyocho_setpriority(one, 40) == 0);
    CHECK(kyocho_getpriority(one, &level) == 0 && level == 40);
    CHECK(kyocho_setpriority(one, 64) == EINVAL && kyocho_setpriority(one, -1) == EINVAL);
    CHECK(kyocho_setpriority(12345678, 1) == ESRCH);
    CHECK(kyocho_getpriority(first, &level) == 0 && level == KYOCHO_PRIORITY_NORMAL);
    CHECK(kyocho_detach(one) == 0 && kyocho_join(one, NULL) == EINVAL);
    CHECK(kyocho_sem_post(&go) == 0);
    while (kyocho_getpriority(one, &level) == 0) kyocho_yield();
    CHECK(kyocho_spawn(&one, NULL, detaches_itself, &go) == 0);
    CHECK(kyocho_sem_wait(&go) == 0);
    CHECK(kyocho_nanosleep(1000) == 0 && kyocho_usleep(1) == 0);
    for (i = 0; i < 500; i += 1) CHECK(kyocho_spawn(&all[i], NULL, twice, (void *)i) == 0);
    for (i = 500; i-- > 0;) CHECK(kyocho_join(all[i], &result) == 0 && result == (void *)(2 * i));
    return NULL;
}

static void *fills_stack(void *argument) {
    volatile char room[700 << 10];
    size_t i;
    (void)argument;
    for (i = 0; i < sizeof room; i += 4096) room[i] = 1;
    return (void *)(uintptr_t)room[4096];
}

static void *with_attributes(void *argument) {
    kyocho_attr_t attributes;
    kyocho_t one;
    size_t bytes = 0;
    int state = 9, level = 0;
    void *result;
    (void)argument;
    memset(&attributes, 0, sizeof attributes);
    CHECK(kyocho_attr_setstacksize(&attributes, 1 << 20) == EINVAL);
    CHECK(kyocho_spawn(&one, &attributes, twice, NULL) == EINVAL);
    CHECK(kyocho_attr_init(&attributes) == 0);
    CHECK(kyocho_attr_getstacksize(&attributes, &bytes) == 0 && bytes == 64 << 10);
    CHECK(kyocho_attr_setstacksize(&attributes, 0) == EINVAL);
    CHECK(kyocho_attr_setstacksize(&attributes, (8 << 20) + 1) == EINVAL);
    CHECK(kyocho_attr_setstacksize(&attributes, 800 << 10) == 0);
    CHECK(kyocho_attr_setpriority(&attributes, 64) == EINVAL);
    CHECK(kyocho_attr_setpriority(&attributes, KYOCHO_PRIORITY_HIGHEST) == 0);
    CHECK(kyocho_attr_setname(&attributes, NULL) == EINVAL);
    CHECK(kyocho_attr_setname(&attributes, "\xff") == EINVAL);
    CHECK(kyocho_attr_setname(&attributes, "a name that is longer than all that is kept of it") == 0);
    CHECK(kyocho_attr_getdetachstate(&attributes, &state) == 0 && state == KYOCHO_CREATE_JOINABLE);
    CHECK(kyocho_attr_setdetachstate(&attributes, 2) == EINVAL);
    CHECK(kyocho_spawn(&one, &attributes, fills_stack, NULL) == 0);
    CHECK(kyocho_getpriority(one, &level) == 0 && level == KYOCHO_PRIORITY_HIGHEST);
    CHECK(kyocho_join(one, &result) == 0 && result == (void *)1);
    CHECK(kyocho_attr_setdetachstate(&attributes, KYOCHO_CREATE_DETACHED) == 0);
    CHECK(kyocho_attr_getdetachstate(&attributes, &state) == 0 && state == KYOCHO_CREATE_DETACHED);
    CHECK(kyocho_spawn(&one, &attributes, twice, NULL) == 0);
    state = kyocho_join(one, NULL);
    CHECK(state == EINVAL || state == ESRCH);
    CHECK(kyocho_attr_destroy(&attributes) == 0);
    CHECK(kyocho_attr_destroy(&attributes) == EINVAL);
    return NULL;
}

static kyocho_key_t counted, chained, plain;
static int destroyed, rounds;

static void count(void *value) {
    CHECK(value == &destroyed);
    CHECK(kyocho_getspecific(counted) == NULL);
    destroyed += 1;
}

static void chain(void *value) {
    rounds += 1;
    CHECK(kyocho_setspecific(chained, value) == 0);
}

static void *has_values(void *argument) {
    CHECK(kyocho_getspecific(counted) == NULL);
    CHECK(kyocho_setspecific(counted, &destroyed) == 0);
    CHECK(kyocho_setspecific(plain, argument) == 0);
    kyocho_yield();
    CHECK(kyocho_getspecific(counted) == &destroyed);
    CHECK(kyocho_getspecific(plain) == argument);
    if (argument == NULL) CHECK(kyocho_setspecific(chained, &rounds) == 0);
    if (argument == &plain) kyocho_exit(NULL);
    return NULL;
}

static void *keys(void *argument) {
    kyocho_t one, other;
    kyocho_key_t stale;
    (void)argument;
    destroyed = rounds = 0;
    CHECK(kyocho_key_create(NULL, NULL) == EINVAL);
    CHECK(kyocho_key_create(&counted, count) == 0);
    CHECK(kyocho_key_create(&chained, chain) == 0);
    CHECK(kyocho_key_create(&plain, NULL) == 0);
    CHECK(kyocho_spawn(&one, NULL, has_values, &plain) == 0);
    CHECK(kyocho_spawn(&other, NULL, has_values, NULL) == 0);
    CHECK(kyocho_join(one, NULL) == 0 && kyocho_join(other, NULL) == 0);
    CHECK(destroyed == 2);
    CHECK(rounds == 4);
    CHECK(kyocho_setspecific(plain, &one) == 0);
    stale = plain;
    CHECK(kyocho_key_delete(plain) == 0 && kyocho_key_delete(stale) == EINVAL);
    CHECK(kyocho_setspecific(stale, &one) == EINVAL && kyocho_getspecific(stale) == NULL);
    CHECK(kyocho_key_create(&plain, NULL) == 0);
    CHECK(plain == stale && kyocho_getspecific(plain) == NULL);
    CHECK(kyocho_setspecific(99999, NULL) == EINVAL && kyocho_getspecific(99999) == NULL);
    CHECK(kyocho_key_delete(counted) == 0 && kyocho_key_delete(chained) == 0);
    CHECK(kyocho_key_delete(plain) == 0);
    return NULL;
}

static void *locks_and_waits(void *argument) {
    CHECK(kyocho_setspecific(counted, &destroyed) == 0);
    waits(argument);
    CHECK(!"goes on although it was killed");
    return NULL;
}

static void *sleeps_behind_our_back(void *argument) {
    CHECK(kyocho_sem_post((kyocho_sem_t *)argument) == 0);
    usleep(1000000000);
    kyocho_yield();
    CHECK(!"goes on although it was killed");
    return NULL;
}

static void *computes(void *argument) {
    volatile int *stop = (volatile int *)argument;
    while (!*stop) kyocho_yield();
    return NULL;
}

static void *joins(void *argument) {
    kyocho_join(*(kyocho_t *)argument, NULL);
    CHECK(!"goes on although it was killed");
    return NULL;
}

static void *kills(void *argument) {
    kyocho_t one, other;
    kyocho_sem_t go;
    volatile int stop = 0;
    void *result = NULL;
    int i;
    (void)argument;
    destroyed = 0;
    CHECK(kyocho_sem_init(&go, 0) == 0 && kyocho_key_create(&counted, count) == 0);
    CHECK(kyocho_kill(987654) == ESRCH && kyocho_suspend(987654) == ESRCH);
    CHECK(kyocho_spawn(&one, NULL, locks_and_waits, &go) == 0);
    kyocho_yield();
    CHECK(kyocho_kill(one) == 0);
    CHECK(kyocho_join(one, &result) == 0 && result == KYOCHO_CANCELED);
    CHECK(destroyed == 1 && kyocho_kill(one) == ESRCH);
    CHECK(kyocho_spawn(&one, NULL, twice, NULL) == 0 && kyocho_kill(one) == 0);
    CHECK(kyocho_join(one, &result) == 0 && (result == KYOCHO_CANCELED || result == NULL));
    CHECK(kyocho_spawn(&one, NULL, sleeps_behind_our_back, &go) == 0);
    CHECK(kyocho_sem_wait(&go) == 0 && kyocho_kill(one) == 0);
    CHECK(kyocho_join(one, &result) == 0 && result == KYOCHO_CANCELED);
    CHECK(kyocho_spawn(&one, NULL, computes, (void *)&stop) == 0);
    CHECK(kyocho_spawn(&other, NULL, joins, &one) == 0);
    for (i = 0; i < 10; i += 1) kyocho_yield();
    CHECK(kyocho_suspend(one) == 0);
    /* Its joiner is killed, which detaches it. */
    CHECK(kyocho_kill(other) == 0);
    CHECK(kyocho_join(other, &result) == 0 && result == KYOCHO_CANCELED);
    CHECK(kyocho_join(one, NULL) == EINVAL);
    CHECK(kyocho_resume(one) == 0);
    stop = 1;
    while (kyocho_getpriority(one, &i) == 0) kyocho_yield();
    CHECK(kyocho_key_delete(counted) == 0);
    return NULL;
}

static void *runs_again(void *argument) {
    (void)argument;
    CHECK(kyocho_run(1, NULL, twice, NULL, NULL) == EBUSY);
    return NULL;
}

static void *waits_for_ever(void *argument) {
    kyocho_sem_t never;
    CHECK(kyocho_sem_init(&never, 0) == 0);
    kyocho_sem_wait(&never);
    return argument;
}

static void *returns_at_once(void *argument) { return argument; }

int main(void) {
    kyocho_t one;
    kyocho_key_t all[1025];
    size_t count = 0;
    void *result = NULL;
    CHECK(kyocho_self() == 0 && kyocho_yield() == EPERM && kyocho_usleep(1) == EPERM);
    CHECK(kyocho_spawn(&one, NULL, twice, NULL) == EPERM && kyocho_join(1, NULL) == EPERM);
    CHECK(kyocho_detach(1) == EPERM && kyocho_setspecific(0, NULL) == EINVAL);
    CHECK(kyocho_outside_expect() == EPERM && kyocho_outside_forget() == EPERM);
    CHECK(kyocho_run(1, NULL, NULL, NULL, NULL) == EINVAL);
    while (kyocho_key_create(&all[count], NULL) == 0) count += 1;
    CHECK(count == 1024 && kyocho_key_create(&all[count], NULL) == EAGAIN);
    while (count-- > 0) CHECK(kyocho_key_delete(all[count]) == 0);
    on_processors(lives);
    on_processors(with_attributes);
    on_processors(keys);
    on_processors(kills);
    on_processors(runs_again);
    CHECK(kyocho_run(0, NULL, exits, &one, &result) == 0 && result == &one);
    CHECK(kyocho_run(0, NULL, returns_at_once, &count, NULL) == 0);
    CHECK(kyocho_run(1, NULL, waits_for_ever, NULL, NULL) == EDEADLK);
    puts("threads: as promised");
    return 0;
}
