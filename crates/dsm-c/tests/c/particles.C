MAIN_ENV
/* Particles on a ring, in the shape of the SPLASH programs: one process allocates and initialises
 * and creates the others; each takes its number under a lock; thousands of locks, one a particle,
 * inside of the shared structures; barriers between phases, a counter that hands out work, a flag.
 * Sums are of integers, so the result is the same in every order. */

#define PARTICLES 4000
#define STEPS 3
#define REACH 5

typedef struct {
    LOCKDEC(lock)
    long place;
    long force;
} particle;

struct global {
    LOCKDEC(number_lock)
    LOCKDEC(energy_lock)
    ALOCKDEC(bin_lock, 16)
    BARDEC(all)
    GSDEC(chunks)
    PAUSEDEC(ready)
    long number;
    long energy;
    long bins[16];
    long *scratch[64];
    unsigned long began;
};

static struct global *global;
static particle *particles;
static long processes;

static void interact(long one, long other) {
    long force = (particles[one].place - particles[other].place) % 7;
    LOCK(particles[one].lock)
    particles[one].force += force;
    UNLOCK(particles[one].lock)
    LOCK(particles[other].lock)
    particles[other].force -= force;
    UNLOCK(particles[other].lock)
}

static void interact_all(void) {
    long chunk, one, reach;
    for (;;) {
        GETSUB(global->chunks, chunk, 39, processes);
        if (chunk < 0) break;
        for (one = chunk * 100; one < (chunk + 1) * 100; one += 10)
            for (reach = 1; reach <= REACH; reach++)
                interact(one, (one + reach) % PARTICLES);
    }
}

static void move(long number) {
    long one, energy = 0;
    for (one = number; one < PARTICLES; one += processes) {
        energy += particles[one].force * particles[one].force;
        particles[one].place += particles[one].force;
        particles[one].force = 0;
        ALOCK(global->bin_lock, particles[one].place & 15);
        global->bins[particles[one].place & 15]++;
        AULOCK(global->bin_lock, particles[one].place & 15);
    }
    LOCK(global->energy_lock);
    global->energy += energy;
    UNLOCK(global->energy_lock);
}

static void work(void) {
    long number, step;
    LOCK(global->number_lock);
    number = global->number++;
    UNLOCK(global->number_lock);
    printf("process at work\n");
    fflush(stdout);
    /* Memory that a process takes for itself while it works. */
    global->scratch[number] = (long *)G_MALLOC(2 * sizeof(long));
    global->scratch[number][0] = number + 1;
    if (number == 0) SETPAUSE(global->ready)
    WAITPAUSE(global->ready);
    for (step = 0; step < STEPS; step++) {
        interact_all();
        BARRIER(global->all, processes);
        move(number);
        BARRIER(global->all, processes);
    }
}

int main(int argc, char **argv) {
    long one, sum = 0, scratch = 0, created;
    processes = argc > 1 ? atol(argv[1]) : 1;
    MAIN_INITENV(,10000000)
    particles = (particle *)G_MALLOC(PARTICLES * sizeof(particle));
    global = (struct global *)G_MALLOC(sizeof(struct global));
    LOCKINIT(global->number_lock);
    LOCKINIT(global->energy_lock);
    ALOCKINIT(global->bin_lock, 16);
    BARINIT(global->all, processes);
    GSINIT(global->chunks);
    PAUSEINIT(global->ready);
    for (one = 0; one < PARTICLES; one++) {
        LOCKINIT(particles[one].lock);
        particles[one].place = one * 37 % 101;
    }
    CLOCK(global->began);
    printf("%d particles, %ld processes\n", PARTICLES, processes);
    for (created = 1; created < processes; created++) CREATE(work);
    work();
    WAIT_FOR_END(processes - 1);
    for (one = 0; one < PARTICLES; one++) sum = (sum * 31 + particles[one].place) % 1000003;
    for (one = 0; one < processes; one++) scratch += global->scratch[one][0];
    printf("energy %ld, places %ld, first bin %ld\n", global->energy, sum, global->bins[0]);
    if (scratch != processes * (processes + 1) / 2 || global->began == 0) printf("scratch %ld\n", scratch);
    MAIN_END;
}
