/* The stand-in drivers: a libcuda.so.1 and a libamdhip64.so.N for tests only. They are not hardware
 * and prove nothing about hardware: their results follow the vendors' manuals, and for CUDA agree
 * with a recorded real driver (trace.c, trace_cuda.txt).
 *
 * Both libraries export the functions below; a test finds them with dlsym. Each library has
 * separate state. They differ from a real driver so that mistakes show:
 *   - the host cannot access device memory (it is mapped twice, and the driver's address is
 *     PROT_NONE); freed addresses are not reused soon;
 *   - handles are not pointers; a destroyed handle is rejected;
 *   - enqueued work runs only when a call waits or queries, and then in any legal order. */
#ifndef C_TESTS_STANDIN_H_
#define C_TESTS_STANDIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

enum { STANDIN_DEVICES_MAX = 8 };

/* What standin_ctl sets; a and b are its numbers, text its text. */
enum standin_what {
  STANDIN_DEFAULTS,    /* all settings below, as when the library was loaded */
  STANDIN_FAIL,        /* call a from now on (1: the next) returns b; text: of this function only */
  STANDIN_FAIL_ALWAYS, /* call a from now on, and each one after it, answers b: the devices are
                          broken, and what was enqueued never runs; but calls after it that only
                          keep track of what is current go on. text: this function is broken, and
                          nothing else */
  STANDIN_GARBAGE,     /* call a works, but its outputs are not written (b 0), all 0 (1), all 1s (2) */
  STANDIN_VERSION,     /* the driver's version is a */
  STANDIN_DEVICES,     /* a devices */
  STANDIN_MEMORY,      /* device a has b bytes */
  STANDIN_SEED = 8,    /* order of execution: 0: only work that is waited for; else any legal one */
  STANDIN_HANG,        /* 1: nothing executes, and waits block until it is set to 0 */
  STANDIN_FAULT_AFTER, /* the a-th operation executed from now on faults with code b, permanently */
  STANDIN_EXITING,     /* 1: as in the process's exit handlers, every call returns 4 */
  STANDIN_POOLS,       /* whether stream-ordered allocation is supported: a */
  STANDIN_FREE_WAITS,  /* whether freeing memory waits for work that uses it: a (0: it is a fault) */
  STANDIN_RUN,         /* executes a operations now (-1: all), if there are that many */
  STANDIN_FORGIVE,     /* sets the number of violations to a */
  STANDIN_CONCURRENT,  /* whether the host may use managed memory while a device works: a */
  STANDIN_EXCLUSIVE,   /* device a is used by another process alone: no primary context, code 46 */
  STANDIN_HOST_DEVICE, /* pinned memory, as from a pool of the host's, is of device a: -1 */
  STANDIN_CTX_LOST     /* destroys the context of device a, as another library might */
};

/* Returns 0, or -1 when the numbers are invalid. */
int standin_ctl(int what, long a, long b, const char *text);

/* Live resources, and totals. A release that fails because of a setting, or because the context is
 * lost, has released the resource. */
typedef struct standin_stats {
  long device_blocks, device_bytes; /* device memory, all devices */
  long pinned, registered, managed; /* pages of the host */
  long contexts;                    /* created with cuCtxCreate */
  long retains;                     /* of primary contexts */
  long streams, events, modules, graphs;
  long pending;                     /* operations not yet executed */
  long calls;                       /* of driver functions */
  long injected;                    /* of those, made to fail or to write garbage */
  long depth;                       /* CUDA: contexts on this thread's stack */
  long device;                      /* the current device of this thread, -1: none */
  long captures_broken;             /* captures in progress that a call has invalidated */
  long violations;                  /* mistakes that a real driver might not notice */
  void *current;                    /* CUDA: the current context of this thread */
} standin_stats_t;
void standin_stats(standin_stats_t *stats);

/* The number of calls of a driver function; NULL: sets all counts to 0. */
long standin_count(const char *function);
/* The last violation as text, "" if there was none. Checks all red zones. */
const char *standin_violation(void);
/* The bytes behind a device address, for the test to read; NULL if there are none. */
void *standin_bytes(const void *device_address);
/* The names of the calls since the count was last reset, one per line; at most n bytes. */
size_t standin_log(char *text, size_t n);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
