/* References in a signal handler that interrupts the process's only thread: whatever the handler
 * retains and releases, no reference is lost. No other thread exists yet. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#ifdef _WIN32
/* There signals do not interrupt a thread. */
int main(void) {
  CHECK(1);
  return t_close();
}
#else
#include <signal.h>
#include <sys/time.h>

enum { SIGNALS = 400 };

static DLManagedTensorVersioned *tensor;
static volatile sig_atomic_t interrupts, kept;
static DLManagedTensorVersioned *keeps[SIGNALS];
static int ran;

/* Every second time the handler keeps its reference. */
static void interrupt(int number) {
  DLManagedTensorVersioned *mine;
  (void)number;
  if (interrupts == SIGNALS) return;
  if (dlrs_retain(tensor, &mine, NULL) != DLRS_OK) abort();
  if (interrupts++ % 2 == 0) {
    dlrs_release(mine);
  } else {
    keeps[kept++] = mine;
  }
}

static void every(long microseconds) {
  struct itimerval timer;
  memset(&timer, 0, sizeof timer);
  timer.it_interval.tv_usec = timer.it_value.tv_usec = microseconds;
  CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

int main(void) {
  struct sigaction action;
  t_tensor good;
  int i;
  t_make(&good);
  memset(&action, 0, sizeof action);
  action.sa_handler = interrupt;
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  WORKS(dlrs_tensor_wrap(&good.managed.dl_tensor, 0, t_count, &ran, &tensor, ERR));
  every(100);
  while (interrupts < SIGNALS) {
    DLManagedTensorVersioned *more[8];
    for (i = 0; i < 8; ++i) {
      if (dlrs_retain(tensor, &more[i], NULL) != DLRS_OK) abort();
    }
    for (i = 0; i < 8; ++i) dlrs_release(more[i]);
  }
  every(0);
  EQUAL(dlrs_ref_count(tensor), 1 + kept);
  for (i = 0; i < kept; ++i) dlrs_release(keeps[i]);
  EQUAL(ran, 0);
  EQUAL(dlrs_ref_count(tensor), 1);
  dlrs_release(tensor);
  EQUAL(ran, 1);
  return t_close();
}
#endif
