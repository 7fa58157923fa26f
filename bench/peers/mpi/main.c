/* The costs of MPI alone, for comparison with shared memory across nodes: a barrier, lock and
 * increment in a window, SOR whose borders are exchanged by hand.
 *
 *     mpicc -O3 main.c -o mpi && mpirun -n 2 ./mpi TURNS ROWS COLUMNS ROUNDS
 *
 * Rank 0 prints one line of JSON for each figure: its name and its value. Each result is checked
 * first. That of SOR is compared bit for bit with the sequential program's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void figure(const char *name, double value) {
    if (rank == 0) printf("{\"figure\": \"%s\", \"value\": %.4f}\n", name, value);
}

static void check(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "mpi: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void barrier(int turns) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    for (int turn = 0; turn < turns; turn++) MPI_Barrier(MPI_COMM_WORLD);
    figure("mpi-barrier-us", (MPI_Wtime() - begun) / turns * 1e6);
}

/* All ranks increment a counter of rank 0 under its window's lock. */
static void lock_increment(int turns) {
    MPI_Win window;
    long *counter;
    MPI_Win_allocate(rank == 0 ? sizeof *counter : 0, sizeof *counter, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &window);
    if (rank == 0) *counter = 0;
    MPI_Win_fence(0, window);
    double begun = MPI_Wtime();
    for (int turn = 0; turn < turns; turn++) {
        long value;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
        MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
        MPI_Win_flush(0, window);
        value++;
        MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double time = MPI_Wtime() - begun;
    MPI_Win_fence(0, window);
    check(rank != 0 || *counter == (long)size * turns, "increments were lost");
    figure("mpi-lock-us", time / (size * (double)turns) * 1e6);
    MPI_Win_free(&window);
}

static int columns;

/* Half a round, as in examples/sor.rs: computes the elements of one colour in rows `first` to `end`
 * from those of the other. */
static void sweep(int colour, float *restrict to, const float *restrict from, long first, long end) {
    for (long row = first; row < end; row++) {
        const float *above = from + (row - 1) * columns, *same = above + columns, *below = same + columns;
        float *out = to + row * columns;
        long shift = (row + colour) % 2;
        for (long place = 1 - shift; place < columns - shift; place++)
            out[place] = (above[place] + below[place] + same[place + shift - 1] + same[place + shift]) / 4.0f;
    }
}

static float *heated(long rows) {
    float *grid = malloc(sizeof *grid * rows * columns);
    check(grid != NULL, "no memory");
    for (long place = 0; place < rows * columns; place++)
        grid[place] = place < columns ? 1.0f : (float)(place * 7919 % 1009) / 1009.0f;
    return grid;
}

/* Sends this rank's first and last row to its neighbours, and receives theirs. */
static void exchange(float *grid, long first, long end) {
    int above = rank > 0 ? rank - 1 : MPI_PROC_NULL, below = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    float *top = grid + first * columns, *bottom = grid + (end - 1) * columns;
    MPI_Sendrecv(top, columns, MPI_FLOAT, above, 0, bottom + columns, columns, MPI_FLOAT, below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(bottom, columns, MPI_FLOAT, below, 1, top - columns, columns, MPI_FLOAT, above, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sor(long rows, int rounds) {
    float *red = heated(rows), *black = heated(rows), *sequential[2] = {heated(rows), heated(rows)};
    double begun = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        sweep(0, sequential[0], sequential[1], 1, rows - 1);
        sweep(1, sequential[1], sequential[0], 1, rows - 1);
    }
    double alone = MPI_Wtime() - begun;
    long first = rows * rank / size, end = rows * (rank + 1) / size;
    if (first < 1) first = 1;
    if (end > rows - 1) end = rows - 1;
    MPI_Barrier(MPI_COMM_WORLD);
    begun = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        sweep(0, red, black, first, end);
        exchange(red, first, end);
        sweep(1, black, red, first, end);
        exchange(black, first, end);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double together = MPI_Wtime() - begun;
    size_t offset = first * columns, bytes = sizeof *red * (end - first) * columns;
    check(!memcmp(red + offset, sequential[0] + offset, bytes) && !memcmp(black + offset, sequential[1] + offset, bytes),
          "the grid differs from the sequential one");
    figure("mpi-sor", alone / together);
    figure("mpi-sor-round-us", together / rounds * 1e6);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(argc == 5, "expected TURNS ROWS COLUMNS ROUNDS");
    columns = atoi(argv[3]) / 2;
    barrier(atoi(argv[1]));
    lock_increment(atoi(argv[1]));
    sor(atol(argv[2]), atoi(argv[4]));
    MPI_Finalize();
    return 0;
}
