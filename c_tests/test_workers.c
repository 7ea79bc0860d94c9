/* The library's threads and their host: it may cancel the thread that waits for them, repair faults
 * in its signal handlers, and bind its threads to processors. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#ifdef _WIN32 /* no such signals, and TerminateThread guarantees nothing */
int main(void) {
  CHECK(1);
  return t_close();
}
#else

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 12, SIDE = 2048 };

static int64_t shape[2] = {SIDE, SIDE}, turned[2] = {1, SIDE};
static const size_t nbytes = (size_t)SIDE * SIDE * 4;
static uint32_t *from, *to;
static dlrs_copy_options options;

static uint32_t *closed_pages(void) {
  void *pages = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? NULL : (uint32_t *)pages;
}

/* A transpose of 16 MiB on the number of threads in `options`. */
static dlrs_status copy_turned(void) {
  DLTensor src = t_describe(from, F32, 2, shape, turned), dst = t_describe(to, F32, 2, shape, NULL);
  return dlrs_copy_desc(&src, 0, &dst, 0, &options, NULL);
}

static int is_copied(void) {
  size_t i, j;
  for (i = 0; i < SIDE; ++i) {
    for (j = 0; j < SIDE; ++j) {
      if (to[i * SIDE + j] != from[j * SIDE + i]) return 0;
    }
  }
  return 1;
}

/* ---- Cancellation -----------------------------------------------------------------------------*/

static int begun;

/* The only cancellation point here is the copy, before it begins. */
static void *copies(void *given) {
  (void)given;
  for (;;) {
    __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
    if (copy_turned() != DLRS_OK) abort();
  }
  return NULL;
}

static int is_untouched(void) {
  size_t i;
  for (i = 0; i < nbytes / 4; ++i) {
    if (to[i] != 0) return 0;
  }
  return 1;
}

/* The same stack, reused: a worker that was left behind reads this. */
static void *scribbles(void *given) {
  volatile unsigned char junk[1 << 16];
  size_t i;
  (void)given;
  for (i = 0; i < sizeof junk; ++i) junk[i] = 0x5a;
  return NULL;
}

static void cancellation(void) {
  pthread_attr_t attributes;
  int i;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 18);
  options.threads = 8;
  for (i = 0; i < ROUNDS; ++i) {
    pthread_t thread;
    void *result = NULL;
    __atomic_store_n(&begun, 0, __ATOMIC_RELAXED);
    if (!CHECK(pthread_create(&thread, &attributes, copies, NULL) == 0)) break;
    while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) == 0) sched_yield();
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    if (!CHECK(pthread_create(&thread, &attributes, scribbles, NULL) == 0)) break;
    pthread_join(thread, NULL);
    CHECK(is_copied() || is_untouched()); /* it ended between copies */
    memset(to, 0, nbytes);
  }
  pthread_attr_destroy(&attributes);
}

/* The thread's cancellation state is unchanged afterwards, in both cases. */
static void the_state_stays(void) {
  int state, former;
  for (state = 0; state < 2; ++state) {
    int wanted = state ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(wanted, &former);
    CHECK(copy_turned() == DLRS_OK);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &former);
    CHECK(former == wanted);
  }
}

/* ---- Signals ----------------------------------------------------------------------------------*/

static long repaired;

static void repairs(int number, siginfo_t *info, void *context) {
  const char *at = (const char *)info->si_addr;
  size_t page = (size_t)sysconf(_SC_PAGESIZE), before = (size_t)(at - (const char *)from);
  (void)number, (void)context;
  if (at < (const char *)from || before >= nbytes) _exit(99);
  mprotect((char *)from + before / page * page, page, PROT_READ | PROT_WRITE);
  __atomic_add_fetch(&repaired, 1, __ATOMIC_RELAXED);
}

/* In a separate process, since a signal that is blocked when it is raised ends it. */
static void faults_are_repaired(void) {
  static const uint32_t threads[] = {1, 0, 2, 8};
  size_t i;
  for (i = 0; i < sizeof threads / sizeof *threads; ++i) {
    int status = -1;
    pid_t child;
    fflush(stdout);
    child = fork();
    if (child == 0) {
      struct sigaction action;
      memset(&action, 0, sizeof action);
      action.sa_sigaction = repairs;
      action.sa_flags = SA_SIGINFO | SA_NODEFER;
      sigaction(SIGSEGV, &action, NULL);
      sigaction(SIGBUS, &action, NULL);
      mprotect(from, nbytes, PROT_NONE);
      options.threads = threads[i];
      if (copy_turned() != DLRS_OK || repaired == 0) _exit(1);
      _exit(is_copied() ? 0 : 2);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    EQUAL(status, 0);
  }
}

/* The signal masks of the library's threads: the host's handlers do not interrupt them. */
static volatile sig_atomic_t on_another;
static pthread_t caller;

static void notes_thread(int number) {
  (void)number;
  if (!pthread_equal(pthread_self(), caller)) on_another = 1;
}

static void *knocks(void *given) {
  while (!__atomic_load_n((int *)given, __ATOMIC_ACQUIRE)) {
    kill(getpid(), SIGUSR1);
    sched_yield();
  }
  return NULL;
}

static void others_are_blocked(void) {
  struct sigaction action;
  sigset_t own;
  pthread_t thread;
  int i, enough = 0;
  memset(&action, 0, sizeof action);
  action.sa_handler = notes_thread;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, NULL);
  caller = pthread_self();
  sigemptyset(&own);
  sigaddset(&own, SIGUSR1);
  /* The caller and the sender block it as well: only a worker could receive it. */
  pthread_sigmask(SIG_BLOCK, &own, NULL);
  options.threads = 8;
  if (CHECK(pthread_create(&thread, NULL, knocks, &enough) == 0)) {
    for (i = 0; i < 4; ++i) CHECK(copy_turned() == DLRS_OK);
    __atomic_store_n(&enough, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
  }
  CHECK(!on_another);
  pthread_sigmask(SIG_UNBLOCK, &own, NULL);
  signal(SIGUSR1, SIG_DFL);
}

/* ---- Processors -------------------------------------------------------------------------------*/

#ifdef __linux__
static int explained(const char *wanted) {
  DLTensor src = t_describe(from, F32, 2, shape, turned), dst = t_describe(to, F32, 2, shape, NULL);
  char text[200];
  WORKS(dlrs_copy_explain(&src, 0, &dst, 0, NULL, text, sizeof text, NULL, ERR));
  if (strstr(text, wanted) != NULL) return 1;
  printf("%s\n", text);
  return 0;
}

static void bound_to_processors(void) {
  cpu_set_t usual, fewer;
  int processor, taken = 0;
  if (sched_getaffinity(0, sizeof usual, &usual) != 0) return;
  CPU_ZERO(&fewer);
  for (processor = 0; processor < CPU_SETSIZE && taken < 2; ++processor) {
    char wanted[40];
    if (!CPU_ISSET(processor, &usual)) continue;
    CPU_SET(processor, &fewer);
    ++taken;
    CHECK(sched_setaffinity(0, sizeof fewer, &fewer) == 0);
    sprintf(wanted, ", %d thread%s, ", taken, taken == 1 ? "" : "s");
    CHECK(explained(wanted));
  }
  CHECK(sched_setaffinity(0, sizeof usual, &usual) == 0);
}
#else
static void bound_to_processors(void) {}
#endif

int main(void) {
  size_t i;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  from = closed_pages();
  to = closed_pages();
  if (!CHECK(from != NULL && to != NULL)) return t_close();
  for (i = 0; i < nbytes / 4; ++i) from[i] = (uint32_t)i * 2654435761u;
  t_context = "cancelled";
  cancellation();
  the_state_stays();
  t_context = "faults";
  faults_are_repaired();
  t_context = "signals";
  others_are_blocked();
  t_context = "processors";
  bound_to_processors();
  munmap(from, nbytes);
  munmap(to, nbytes);
  return t_close();
}
#endif
