divert(-1)
dnl parmacs.m4: the PARMACS macros of the SPLASH suites, on memory shared across nodes (kyocho-dsm.h).
dnl
dnl     m4 $(pkg-config --variable=parmacs kyocho-dsm) water.C >water.c      each source, and each header written in macros
dnl     cc *.c $(pkg-config --cflags --libs kyocho-dsm) -lm -o water
dnl     kyocho dsm run -n 4 ./water <input                                   as many nodes as the program has processes
dnl
dnl CREATE(f) and WAIT_FOR_END(n) are those of SPLASH and SPLASH-2. CREATE(f, n) is that of SPLASH-3: n - 1 processes beside the
dnl caller, which runs f as well. With m4 -DRELEASE_CONSISTENCY, a lock passes on all writes before its release, and not only those
dnl made under it. Programs need that if they queue work under a lock and write the data of the work without it. The cost is that of
dnl sending the writes. A macro that is a statement may be followed by a semicolon.

define(EXTERN_ENV, `
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/time.h>
#include <kyocho-dsm.h>
')
dnl All nodes run the code before MAIN_INITENV. Those other than 0 print nothing, from before main on.
define(MAIN_ENV, `EXTERN_ENV
__attribute__((weak)) int kyocho_dsm_output = -1;
__attribute__((constructor)) static void kyocho_dsm_hush(void) {
    const char *rank = getenv("KYOCHO_DSM_RANK");
    int nowhere = -1;
    if (kyocho_dsm_output >= 0 || rank == NULL || strcmp(rank, "0") == 0) return;
    if ((kyocho_dsm_output = dup(1)) < 0) return;
    if ((nowhere = open("/dev/null", O_WRONLY)) < 0) return;
    dup2(nowhere, 1);
    close(nowhere);
}
__attribute__((unused)) static void kyocho_dsm_unhush(void) {
    if (kyocho_dsm_output < 0) return;
    fflush(stdout);
    dup2(kyocho_dsm_output, 1);
    close(kyocho_dsm_output);
    kyocho_dsm_output = -1;
}
')

define(MAIN_INITENV, `{ kyocho_dsm_unhush(); kyocho_dsm_start(ifelse(`$2', `', `0', `$2')); }')
define(MAIN_END, `{ kyocho_dsm_end(); exit(0); }')

define(CREATE, `ifelse($#, `1', `{ kyocho_dsm_create((void (*)(void))($1)); }',
`{
    long kyocho_dsm_left;
    for (kyocho_dsm_left = ($2) - 1; kyocho_dsm_left > 0; kyocho_dsm_left--)
        kyocho_dsm_create((void (*)(void))($1));
    ((void (*)(void))($1))();
}')')
define(WAIT_FOR_END, `{ kyocho_dsm_wait_for_end(); }')

dnl These two end a statement, on which programs of SPLASH-2 rely. Use the variants with F in expressions.
define(G_MALLOC, `kyocho_dsm_malloc($1);')
define(NU_MALLOC, `kyocho_dsm_malloc($1);')
define(G_MALLOC_F, `kyocho_dsm_malloc($1)')
define(NU_MALLOC_F, `kyocho_dsm_malloc($1)')
define(G_FREE, `((void)($1))')
define(NU_FREE, `((void)($1))')

define(LOCKDEC, `kyocho_dsm_lock_t $1;')
define(LOCKINIT, `{ kyocho_dsm_lock_init(&($1)); }')
define(LOCK, `{ kyocho_dsm_lock(&($1)); }')
define(UNLOCK, ifdef(`RELEASE_CONSISTENCY', ``{ kyocho_dsm_unlock_all(&($1)); }'', ``{ kyocho_dsm_unlock(&($1)); }''))

define(NLOCKDEC, `LOCKDEC($1)')
define(NLOCKINIT, `LOCKINIT($1)')
define(NLOCK, `LOCK($1)')
define(NUNLOCK, `UNLOCK($1)')

define(ALOCKDEC, `kyocho_dsm_lock_t $1[$2];')
define(ALOCKINIT, `{
    long kyocho_dsm_index;
    for (kyocho_dsm_index = 0; kyocho_dsm_index < ($2); kyocho_dsm_index++)
        kyocho_dsm_lock_init(&($1)[kyocho_dsm_index]);
}')
define(ALOCK, `{ kyocho_dsm_lock(&($1)[$2]); }')
define(AULOCK, `UNLOCK(($1)[$2])')
define(AUNLOCK, `AULOCK($1, $2)')

define(BARDEC, `kyocho_dsm_barrier_t $1;')
define(BARINIT, `{ ($1).processes = ifelse(`$2', `', `0', `$2'); }')
define(BARRIER, `{ kyocho_dsm_barrier_of(ifelse(`$2', `', `($1).processes', `$2')); }')
define(BAREXCLUDE, `;')
define(BARINCLUDE, `;')

define(GSDEC, `kyocho_dsm_counter_t $1;')
define(GSINIT, `{ kyocho_dsm_counter_init(&($1)); }')
define(GETSUB, `{ ($2) = kyocho_dsm_counter_next(&($1), $3, $4); }')
define(NU_GSDEC, `GSDEC($1)')
define(NU_GSINIT, `GSINIT($1)')
define(NU_GETSUB, `GETSUB($1, $2, $3, $4)')

define(PAUSEDEC, `kyocho_dsm_flag_t $1`'ifelse(`$2', `', `', `[$2]');')
define(PAUSEINIT, `ifelse(`$2', `', `{ kyocho_dsm_flag_init(&($1)); }', `{
    long kyocho_dsm_index;
    for (kyocho_dsm_index = 0; kyocho_dsm_index < ($2); kyocho_dsm_index++)
        kyocho_dsm_flag_init(&($1)[kyocho_dsm_index]);
}')')
define(SETPAUSE, `{ kyocho_dsm_flag_set(&($1), 1); }')
define(CLEARPAUSE, `{ kyocho_dsm_flag_set(&($1), 0); }')
define(WAITPAUSE, `{ kyocho_dsm_flag_wait(&($1), 1); }')
define(PAUSE, `WAITPAUSE($1)')
define(EVENT, `;')

dnl As in SPLASH-3. A process that signals has held the lock since the other began to wait, as it must to change what that one waits for.
define(CONDVARDEC, `kyocho_dsm_condition_t $1;')
define(CONDVARINIT, `{ kyocho_dsm_condition_init(&($1)); }')
define(CONDVARWAIT, `{ kyocho_dsm_condition_wait(&($1), &($2)); }')
define(CONDVARSIGNAL, `{ kyocho_dsm_condition_signal(&($1), 0); }')
define(CONDVARBCAST, `{ kyocho_dsm_condition_signal(&($1), 1); }')

dnl Of simulators and other machines.
define(ENV, `')
define(GET_HOME, `{ ($1) = kyocho_dsm_rank(); }')
define(GET_PID, `{ ($1) = kyocho_dsm_rank(); }')
define(SET_HOME, `;')
define(ST_LOG, `;')
define(DELAY, `;')
define(AUG_DELAY, `;')
define(AUG_ON, `')
define(AUG_OFF, `')
define(AUG_SET_LOLIMIT, `;')
define(AUG_SET_HILIMIT, `;')
define(TRACE_ON, `')
define(TRACE_OFF, `')
define(REF_TRACE_ON, `')
define(REF_TRACE_OFF, `')
define(DYN_TRACE_ON, `;')
define(DYN_TRACE_OFF, `;')
define(DYN_REF_TRACE_ON, `;')
define(DYN_REF_TRACE_OFF, `;')
define(DYN_SIM_ON, `;')
define(DYN_SIM_OFF, `;')
define(DYN_SCHED_ON, `;')
define(DYN_SCHED_OFF, `;')

define(CLOCK, `{ ($1) = kyocho_dsm_clock(); }')
divert(0)dnl
