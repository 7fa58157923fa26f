MAIN_ENV
/* A buffer of a few places between processes, half of which put numbers in and half of which take
 * them out, with condition variables as SPLASH-3 has them. */

#define PLACES 4
#define NUMBERS 200

struct global {
    LOCKDEC(lock)
    CONDVARDEC(not_full)
    CONDVARDEC(not_empty)
    CONDVARDEC(go)
    long number, begun, first, count, sum;
    long places[PLACES];
} *global;

static long processes;

static void put(long number) {
    LOCK(global->lock)
    while (global->count == PLACES) { CONDVARWAIT(global->not_full, global->lock) }
    global->places[(global->first + global->count++) % PLACES] = number;
    CONDVARSIGNAL(global->not_empty)
    UNLOCK(global->lock)
}

static long get(void) {
    long number;
    LOCK(global->lock)
    while (global->count == 0) { CONDVARWAIT(global->not_empty, global->lock) }
    number = global->places[global->first];
    global->first = (global->first + 1) % PLACES;
    global->count--;
    CONDVARSIGNAL(global->not_full)
    UNLOCK(global->lock)
    return number;
}

static void work(void) {
    long number, turn, sum = 0;
    LOCK(global->lock)
    number = global->number++;
    if (global->number == processes) {
        global->begun = 1;
        CONDVARBCAST(global->go)
    }
    while (!global->begun) { CONDVARWAIT(global->go, global->lock) }
    UNLOCK(global->lock)
    for (turn = 1; turn <= NUMBERS; turn++) {
        if (number % 2 == 0) put(turn);
        else sum += get();
    }
    LOCK(global->lock)
    global->sum += sum;
    UNLOCK(global->lock)
}

int main(int argc, char **argv) {
    processes = argc > 1 ? atol(argv[1]) : 2;
    MAIN_INITENV(,8000000)
    global = (struct global *)G_MALLOC(sizeof(struct global))
    LOCKINIT(global->lock)
    CONDVARINIT(global->not_full)
    CONDVARINIT(global->not_empty)
    CONDVARINIT(global->go)
    CREATE(work, processes)
    WAIT_FOR_END(processes)
    printf("sum %ld, %ld left\n", global->sum, global->count);
    MAIN_END
}
