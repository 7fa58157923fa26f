MAIN_ENV
/* Says things before MAIN_INITENV and after it, as WATER-NSQUARED does: all nodes run that, and one
 * is heard. What processes say at work is heard of each. */

static void work(void) { printf("at work\n"); }

int main(int argc, char **argv) {
    long processes = argc > 1 ? atol(argv[1]) : 1;
    printf("first\n");
    fflush(stdout);
    printf("second\n");
    MAIN_INITENV(,0)
    printf("third\n");
    CREATE(work, processes)
    WAIT_FOR_END(processes)
    printf("last\n");
    MAIN_END
}
