MAIN_ENV
/* Tasks in a queue: what a task works on is written before the task is put in, under no lock, and
 * read by the process that takes the task out, as in SPLASH's RAYTRACE or CHOLESKY. Each task
 * doubles its item and puts the next one in. */

#define TASKS 60
#define WORDS 50

struct global {
    LOCKDEC(number_lock)
    LOCKDEC(queue_lock)
    long number, queued, taken, wrong;
    long items[TASKS + 1][WORDS];
} *global;

static long processes;

/* The number of a task, or -1 when there are no more. */
static long take(void) {
    for (;;) {
        long task = -2;
        LOCK(global->queue_lock)
        if (global->taken == TASKS) task = -1;
        else if (global->taken < global->queued) task = global->taken++;
        UNLOCK(global->queue_lock)
        if (task != -2) return task;
        usleep(100);
    }
}

static void work(void) {
    long number, task, word;
    LOCK(global->number_lock)
    number = global->number++;
    UNLOCK(global->number_lock)
    while ((task = take()) >= 0) {
        for (word = 0; word < WORDS; word++) {
            if (global->items[task][word] != task + word) {
                LOCK(global->number_lock)
                global->wrong++;
                UNLOCK(global->number_lock)
            }
            global->items[task + 1][word] = global->items[task][word] + 1;
        }
        LOCK(global->queue_lock)
        global->queued++;
        UNLOCK(global->queue_lock)
    }
    if (number < 0) printf("no number\n");
}

int main(int argc, char **argv) {
    long word;
    processes = argc > 1 ? atol(argv[1]) : 1;
    MAIN_INITENV(,8000000)
    global = (struct global *)G_MALLOC(sizeof(struct global))
    LOCKINIT(global->number_lock)
    LOCKINIT(global->queue_lock)
    for (word = 0; word < WORDS; word++) global->items[0][word] = word;
    global->queued = 1;
    CREATE(work, processes)
    WAIT_FOR_END(processes)
    printf("last %ld, %ld wrong\n", global->items[TASKS][0], global->wrong);
    MAIN_END
}
