MAIN_ENV
/* Programs that cannot go on, by the name of their mistake. */

static LOCKDEC(never)
static LOCKDEC(lock)
static BARDEC(all)
static PAUSEDEC(flag)

static void work(void) {
    BARRIER(all, 5);
}

static void unlock(void) {
    UNLOCK(lock);
}

static void nothing(void) {
    CREATE(nothing)
}

int main(int argc, char **argv) {
    const char *mistake = argc > 1 ? argv[1] : "";
    if (strcmp(mistake, "early") == 0) G_MALLOC(1);
    MAIN_INITENV(,)
    BARINIT(all, 5);
    LOCKINIT(lock);
    PAUSEINIT(flag);
    if (strcmp(mistake, "lock") == 0) LOCK(never)
    if (strcmp(mistake, "memory") == 0) G_MALLOC((size_t)1 << 40);
    if (strcmp(mistake, "flag") == 0) WAITPAUSE(flag)
    if (strcmp(mistake, "barrier") == 0) CREATE(work, 2)
    if (strcmp(mistake, "unlock") == 0) CREATE(unlock, 2)
    if (strcmp(mistake, "many") == 0) {
        CREATE(work)
        nothing();
    }
    WAIT_FOR_END(1);
    MAIN_END;
}
