/* Calls on a thread whose whole stack is 64 KiB, of which the thread's data and thread-local
 * storage take some. Below it is an inaccessible page;
 * an access to it is reported by name, and ends the program. POSIX. STACK_KIB sets a larger size,
 * to measure or for a library with larger frames (instrumented, or not optimised).
 *
 * The C library's share grows with the program's thread-local storage: small_stack_own returns
 * it. */
#ifndef C_TESTS_SMALL_STACK_H_
#define C_TESTS_SMALL_STACK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32 /* stacks grow to the limit in the program's header: default handling */

static size_t small_stack_run(const char *doing, void (*work)(void *), void *argument) {
  (void)doing;
  work(argument);
  return 0;
}
static void small_stack_begin(void) {}
static void small_stack_end(void) {}

#else

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SMALL_STACK_KIB 512
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SMALL_STACK_KIB 512
#endif
#endif
#ifndef SMALL_STACK_KIB
#define SMALL_STACK_KIB 64
#endif

typedef struct small_stack {
  unsigned char *base; /* the lowest byte; the page below it is inaccessible */
  unsigned char *seen; /* same memory, other address: valgrind treats the first as a stack */
  size_t nbytes;
  size_t own;          /* bytes that an idle thread touches */
  size_t most;         /* bytes that a call's thread has touched */
  const char *most_in;
} small_stack;

static small_stack small;

/* The thread's current activity, for the handler. */
static const char *volatile small_stack_doing = "nothing";

static void small_stack_fault(int number, siginfo_t *info, void *context) {
  static const char text[] = "failed: beyond the stack's end in ", end[] = "\n0 passed, 1 failed\n";
  const unsigned char *at = (const unsigned char *)info->si_addr;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  (void)context;
  if (at < small.base && at >= small.base - page) {
    const char *doing = small_stack_doing;
    (void)!write(1, text, sizeof text - 1);
    (void)!write(1, doing, strlen(doing));
    (void)!write(1, end, sizeof end - 1);
    _exit(1);
  }
  signal(number, SIG_DFL); /* any other fault: repeated with the default action */
}

typedef struct small_stack_call {
  void (*work)(void *argument);
  void *argument;
} small_stack_call;

static char small_stack_signals[64 << 10];

static void *small_stack_start(void *given) {
  const small_stack_call *call = (const small_stack_call *)given;
  stack_t other;
  memset(&other, 0, sizeof other);
  other.ss_sp = small_stack_signals;
  other.ss_size = sizeof small_stack_signals;
  sigaltstack(&other, NULL);
  call->work(call->argument);
  other.ss_flags = SS_DISABLE;
  sigaltstack(&other, NULL);
  return NULL;
}

static void *small_stack_nothing(void *given) { return given; }

/* Runs `work(argument)` there and waits for it; returns how many bytes of the stack were
 * touched. */
static size_t small_stack_run(const char *doing, void (*work)(void *), void *argument) {
  small_stack_call call;
  pthread_attr_t attributes;
  pthread_t thread;
  size_t untouched = 0;
  call.work = work;
  call.argument = argument;
  memset(small.seen, 0xa5, small.nbytes);
  small_stack_doing = doing;
  if (pthread_attr_init(&attributes) != 0 ||
      pthread_attr_setstack(&attributes, small.base, small.nbytes) != 0 ||
      pthread_create(&thread, &attributes, work != NULL ? small_stack_start : small_stack_nothing,
                     &call) != 0) {
    printf("failed: no thread with a stack of %lu bytes\n", (unsigned long)small.nbytes);
    exit(1);
  }
  pthread_join(thread, NULL);
  pthread_attr_destroy(&attributes);
  while (untouched < small.nbytes && small.seen[untouched] == 0xa5) ++untouched;
  if (small.nbytes - untouched > small.most && work != NULL) {
    small.most = small.nbytes - untouched;
    small.most_in = doing;
  }
  return small.nbytes - untouched;
}

static unsigned char *small_stack_map(FILE *file, size_t nbytes) {
  void *all = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
  if (all == MAP_FAILED) {
    printf("failed: no memory for a stack\n");
    exit(1);
  }
  return (unsigned char *)all;
}

static void small_stack_begin(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), least = (size_t)PTHREAD_STACK_MIN;
  const char *kib = getenv("STACK_KIB");
  struct sigaction action;
  FILE *file = tmpfile();
  unsigned char *all;
  small.nbytes = (size_t)(kib != NULL ? atol(kib) : SMALL_STACK_KIB) << 10;
  if (small.nbytes < least) small.nbytes = least;
  small.nbytes = (small.nbytes + page - 1) / page * page;
  if (file == NULL || ftruncate(fileno(file), (off_t)(small.nbytes + page)) != 0) {
    printf("failed: no file for a stack\n");
    exit(1);
  }
  all = small_stack_map(file, small.nbytes + page);
  small.seen = small_stack_map(file, small.nbytes + page) + page;
  small.base = all + page;
  fclose(file);
  if (mprotect(all, page, PROT_NONE) != 0) exit(1);
  memset(&action, 0, sizeof action);
  action.sa_sigaction = small_stack_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  small.own = small_stack_run("an empty thread", NULL, NULL);
}

/* One line of figures. */
static void small_stack_end(void) {
  printf("stack: %lu of %lu bytes, %lu of them a thread's own (%s)\n", (unsigned long)small.most,
         (unsigned long)small.nbytes, (unsigned long)small.own,
         small.most_in != NULL ? small.most_in : "no call");
}

#endif
#endif
