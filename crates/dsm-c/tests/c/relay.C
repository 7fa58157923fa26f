MAIN_ENV
/* An array that processes hand on by flags, without a lock or a barrier, as SPLASH-2's RADIX does:
 * a process that has waited for a flag sees all that any process wrote before it was set. In the
 * manner of those programs, statements of macros end with a semicolon or without. */

#define PLACES 3000
#define ROUNDS 4

struct global {
    LOCKDEC(number_lock)
    long number;
    PAUSEDEC(turn, 16)
    long *places;
    long wrong;
} *global;

static long processes;

static void work(void) {
    long number, round, place, expected;
    LOCK(global->number_lock)
        number = global->number++;
    UNLOCK(global->number_lock)
    AUG_ON
    for (round = 0; round < ROUNDS; round++) {
        WAITPAUSE(global->turn[number])
        CLEARPAUSE(global->turn[number])
        expected = round * processes + number;
        for (place = 0; place < PLACES; place++) {
            /* A process works on each third place: the others of its page belong to other
             * processes. */
            if (place % 3 != 0) continue;
            if (global->places[place] != expected) global->wrong++;
            global->places[place] = expected + 1;
        }
        SETPAUSE(global->turn[(number + 1) % processes])
    }
    TRACE_OFF
}

int main(int argc, char **argv) {
    long sum = 0, place;
    processes = argc > 1 ? atol(argv[1]) : 1;
    MAIN_INITENV(,8000000)
    global = (struct global *)G_MALLOC(sizeof(struct global))
    global->places = (long *)G_MALLOC(PLACES * sizeof(long));
    if (G_MALLOC_F(8) == NULL || NU_MALLOC_F(8, 0) == NULL) return 1;
    LOCKINIT(global->number_lock)
    PAUSEINIT(global->turn, 16)
    SETPAUSE(global->turn[0])
    CREATE(work, processes)
    WAIT_FOR_END(processes)
    for (place = 0; place < PLACES; place++) sum += global->places[place];
    printf("sum %ld, %ld wrong\n", sum, global->wrong);
    MAIN_END
}
