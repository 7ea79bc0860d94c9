/* dlrs_workers: threads of an application, which wait for copies. `test_pool N` divides the number
 * of small jobs by N. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

static int nothing_ran;

static void runs_nothing(void *context, size_t i) {
  (void)context, (void)i;
  nothing_ran = 1;
}

static void arguments(void) {
  dlrs_workers_options options;
  void *workers = NULL;
  memset(&options, 0, sizeof options);
  t_context = "arguments";
  REFUSED(DLRS_NULL_ARG, 2, 0, -1, dlrs_workers_new(NULL, NULL, ERR));
  t_result(&workers);
  REFUSED(DLRS_STRUCT_SIZE, 1, DLRS_FIELD_STRUCT_SIZE, -1, dlrs_workers_new(&options, &workers, ERR));
  options.struct_size = sizeof options;
  options.reserved = 1;
  REFUSED(DLRS_BAD_ARG, 1, DLRS_FIELD_OPTION, -1, dlrs_workers_new(&options, &workers, ERR));
  options.reserved = 0;
  options.threads = 65;
  REFUSED(DLRS_BAD_ARG, 1, DLRS_FIELD_OPTION, -1, dlrs_workers_new(&options, &workers, ERR));
  EQUAL(t_error.value, 65);
  EQUAL(t_error.limit, 64);
  t_unwatch();
  CHECK(dlrs_workers_run(NULL, 4, runs_nothing, NULL) != 0);
  dlrs_workers_free(NULL);
  WORKS(dlrs_workers_new(NULL, &workers, ERR));
  CHECK(dlrs_workers_run(workers, 0, runs_nothing, NULL) != 0);
  CHECK(dlrs_workers_run(workers, 1, runs_nothing, NULL) != 0);
  CHECK(dlrs_workers_run(workers, 65535, runs_nothing, NULL) != 0);
  CHECK(dlrs_workers_run(workers, SIZE_MAX, runs_nothing, NULL) != 0);
  dlrs_workers_free(workers);
  CHECK(!nothing_ran);
}

#ifdef _WIN32
int main(void) {
  arguments();
  return t_close();
}
#else

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void *workers_of(uint32_t threads) {
  dlrs_workers_options options;
  void *workers = NULL;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.threads = threads;
  if (dlrs_workers_new(&options, &workers, NULL) != DLRS_OK) abort();
  return workers;
}

/* Threads of this process; 0 where the system does not list them. */
static int threads_listed(void) {
  DIR *tasks = opendir("/proc/self/task");
  int n = 0;
  if (tasks == NULL) return 0;
  while (readdir(tasks) != NULL) ++n;
  closedir(tasks);
  return n;
}

/* Once they are not more than `before`: the system lists a thread that was joined a moment longer. */
static int threads_left(int before) {
  int n, turns = 0;
  while ((n = threads_listed()) > before && turns++ < 100000) sched_yield();
  return n;
}

static void no_threads_or_memory(void) {
  dlrs_workers_options options;
  void *workers = NULL;
  int given, before = threads_listed();
  t_context = "no threads";
  if (!inject_works()) return;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.threads = 5;
  t_heap_shared = 1; /* the C library's threads */
  t_result(&workers);
  for (given = 0; given < 4; ++given) {
    inject_threads(1 + given);
    REFUSED(DLRS_NOMEM, 0, 0, -1, dlrs_workers_new(&options, &workers, ERR));
    EQUAL(inject_threads(0), 1);
    EQUAL(t_error.value, given);
    EQUAL(t_error.limit, 4);
  }
  CHECK(threads_left(before) <= before);
  t_heap_shared = 0;
  inject_arm(1, 0);
  REFUSED(DLRS_NOMEM, 0, 0, -1, dlrs_workers_new(&options, &workers, ERR));
  CHECK(inject_disarm());
  t_unwatch();
}

/* ---- Small jobs -------------------------------------------------------------------------------*/

enum { PARTS_MOST = 9 };

typedef struct job {
  long count[PARTS_MOST];
} job;

static void adds_one(void *context, size_t i) {
  __atomic_add_fetch(&((job *)context)->count[i], 1, __ATOMIC_RELAXED);
}

static void adds_many(void *context, size_t i) {
  __atomic_add_fetch(&((job *)context)->count[i], 1000, __ATOMIC_RELAXED);
}

/* Jobs one after the other, each with a body, a context and a number of parts unlike the last one's. */
static void small_jobs(uint32_t threads, long jobs) {
  void *workers = workers_of(threads);
  job of_one[2];
  long n, wrong = 0;
  t_context = "small jobs";
  for (n = 0; n < jobs; ++n) {
    job *mine = &of_one[n % 2];
    size_t parts = 2 + (size_t)(n * 5 % (PARTS_MOST - 1)), i;
    memset(mine, 0, sizeof *mine);
    if (dlrs_workers_run(workers, parts, n % 3 ? adds_one : adds_many, mine) != 0) ++wrong;
    for (i = 0; i < PARTS_MOST; ++i) wrong += mine->count[i] != (i < parts ? n % 3 ? 1 : 1000 : 0);
  }
  EQUAL(wrong, 0);
  dlrs_workers_free(workers);
}

/* ---- Beside each other ------------------------------------------------------------------------*/

typedef struct meeting {
  void *workers;
  int arrived;
  int nested, caught, blocked;
  pthread_t thread[2];
} meeting;

/* Each part waits for the other one, so they run on two threads. */
static void meets(void *context, size_t i) {
  meeting *at = (meeting *)context;
  sigset_t set;
  __atomic_add_fetch(&at->arrived, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&at->arrived, __ATOMIC_SEQ_CST) < 2) sched_yield();
  at->thread[i] = pthread_self();
  if (dlrs_workers_run(at->workers, 2, meets, at) == 0) at->nested = 1;
  pthread_sigmask(SIG_BLOCK, NULL, &set);
  if (sigismember(&set, SIGUSR1)) __atomic_add_fetch(&at->blocked, 1, __ATOMIC_SEQ_CST);
  if (sigismember(&set, SIGSEGV)) __atomic_add_fetch(&at->caught, 1, __ATOMIC_SEQ_CST);
}

static void at_the_same_time(void) {
  meeting at;
  memset(&at, 0, sizeof at);
  t_context = "two threads meet";
  at.workers = workers_of(2);
  CHECK(dlrs_workers_run(at.workers, 2, meets, &at) == 0);
  CHECK(!pthread_equal(at.thread[0], at.thread[1]));
  CHECK(!at.nested); /* in use: by the caller of this part */
  EQUAL(at.blocked, 1); /* on the worker, not on the caller */
  EQUAL(at.caught, 0);
  dlrs_workers_free(at.workers);
}

/* ---- Copies -----------------------------------------------------------------------------------*/

enum { SIDE = 1280, ROUNDS = 20 };

typedef struct user {
  dlrs_copy_options options;
  int32_t *from, *to;
  long wrong;
} user;

static void makes_user(user *of, void *workers) {
  memset(of, 0, sizeof *of);
  of->options.struct_size = sizeof of->options;
  of->options.parallel_for = dlrs_workers_run;
  of->options.parallel_context = workers;
  of->from = (int32_t *)malloc((size_t)SIDE * SIDE * 4);
  of->to = (int32_t *)malloc((size_t)SIDE * SIDE * 4);
  if (of->from == NULL || of->to == NULL) abort();
}

static void ends_user(user *of) {
  EQUAL(of->wrong, 0);
  free(of->from);
  free(of->to);
}

/* Transposes of 64 KiB to 6 MiB: below and above the sizes from which there are 2, 4 and more
 * parts. The parts that explain tells. */
static int copies(user *of, int64_t side, uint32_t dtype_bits) {
  int64_t n = side, shape[2], turned[2], i, j;
  DLDataType dtype = t_dtype(kDLInt, (int)dtype_bits, 1);
  DLTensor src, dst;
  char text[256];
  const char *threads;
  shape[0] = shape[1] = n;
  turned[0] = 1, turned[1] = n;
  src = t_describe(of->from, dtype, 2, shape, turned);
  dst = t_describe(of->to, dtype, 2, shape, NULL);
  for (i = 0; i < n * n; ++i) {
    if (dtype_bits == 32) of->from[i] = (int32_t)(i * 40503);
    else ((int8_t *)of->from)[i] = (int8_t)(i * 40503 >> 8);
  }
  memset(of->to, 0x5a, (size_t)(n * n) * dtype_bits / 8);
  if (dlrs_copy_desc(&src, 0, &dst, 0, &of->options, NULL) != DLRS_OK) ++of->wrong;
  for (i = 0; i < n; ++i) {
    for (j = 0; j < n; ++j) {
      if (dtype_bits == 32) of->wrong += of->to[i * n + j] != of->from[j * n + i];
      else of->wrong += ((int8_t *)of->to)[i * n + j] != ((int8_t *)of->from)[j * n + i];
    }
  }
  if (dlrs_copy_explain(&src, 0, &dst, 0, &of->options, text, sizeof text, NULL, NULL) != DLRS_OK) return -1;
  for (threads = strstr(text, " thread"); threads > text && threads[-1] != ' ';) --threads;
  return threads == NULL ? -1 : atoi(threads);
}

static void values(void) {
  user of;
  void *workers = workers_of(3);
  t_context = "values";
  makes_user(&of, workers);
  EQUAL(copies(&of, 150, 32), 1);
  EQUAL(copies(&of, 182, 32), 2);
  EQUAL(copies(&of, 256, 32), 3);
  EQUAL(copies(&of, 512, 32), 3);
  EQUAL(copies(&of, 1100, 32), 6);
  EQUAL(copies(&of, 517, 8), 3);
  of.options.threads = 2;
  EQUAL(copies(&of, 512, 32), 2);
  of.options.threads = 1;
  EQUAL(copies(&of, 512, 32), 1);
  of.options.threads = 0;
  of.options.parallel_context = NULL;
  copies(&of, 512, 32);
  of.options.parallel_for = NULL;
  EQUAL(copies(&of, 512, 32), 1);
  ends_user(&of);
  dlrs_workers_free(workers);
}

static void *uses(void *given) {
  user *of = (user *)given;
  int i;
  for (i = 0; i < ROUNDS; ++i) copies(of, 190 + 8 * i, 32);
  return NULL;
}

static void three_users(void) {
  enum { USERS = 3 };
  void *workers = workers_of(2);
  pthread_t thread[USERS];
  user of[USERS];
  int i;
  t_context = "three users";
  for (i = 0; i < USERS; ++i) {
    makes_user(&of[i], workers);
    if (pthread_create(&thread[i], NULL, uses, &of[i]) != 0) abort();
  }
  for (i = 0; i < USERS; ++i) {
    pthread_join(thread[i], NULL);
    ends_user(&of[i]);
  }
  dlrs_workers_free(workers);
}

/* ---- The end ----------------------------------------------------------------------------------*/

typedef struct ending {
  void *workers;
  int begun, freeing, done, result;
} ending;

static void waits(void *context, size_t i) {
  ending *of = (ending *)context;
  int turns;
  (void)i;
  __atomic_store_n(&of->begun, 1, __ATOMIC_SEQ_CST);
  while (!__atomic_load_n(&of->freeing, __ATOMIC_SEQ_CST)) sched_yield();
  for (turns = 0; turns < 50; ++turns) sched_yield(); /* the other thread's chance to go wrong */
  __atomic_add_fetch(&of->done, 1, __ATOMIC_SEQ_CST);
}

static void *begins(void *given) {
  ending *of = (ending *)given;
  of->result = dlrs_workers_run(of->workers, 6, waits, of);
  return NULL;
}

static void free_while_busy(void) {
  int round;
  t_context = "freed while in use";
  for (round = 0; round < 30; ++round) {
    int before = threads_listed();
    ending of;
    pthread_t thread;
    memset(&of, 0, sizeof of);
    of.workers = workers_of(3);
    if (pthread_create(&thread, NULL, begins, &of) != 0) abort();
    while (!__atomic_load_n(&of.begun, __ATOMIC_SEQ_CST)) sched_yield();
    __atomic_store_n(&of.freeing, 1, __ATOMIC_SEQ_CST);
    dlrs_workers_free(of.workers);
    EQUAL(__atomic_load_n(&of.done, __ATOMIC_SEQ_CST), 6);
    pthread_join(thread, NULL);
    EQUAL(of.result, 0);
    CHECK(threads_left(before) <= before);
  }
}

/* In a child, whose exit status is that of the copies there. */
static void in_child(user *of, void *workers) {
  int status = -1;
  pid_t child;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    void *own;
    job mine;
    memset(&mine, 0, sizeof mine);
    alarm(400); /* a child that waits for its parent's workers ends so */
    if (dlrs_workers_run(workers, 4, runs_nothing, NULL) == 0) _exit(1);
    copies(of, 300, 32);
    own = workers_of(2);
    if (dlrs_workers_run(own, 4, adds_one, &mine) != 0 || mine.count[3] != 1) _exit(2);
    of->options.parallel_context = own;
    copies(of, 300, 32);
    dlrs_workers_free(own);
    dlrs_workers_free(workers);
    status = of->wrong == 0 ? 0 : 3;
    ends_user(of);
    _exit(status);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  EQUAL(status, 0);
}

static int enough;

static void *keeps_busy(void *workers) {
  job mine;
  memset(&mine, 0, sizeof mine);
  while (!__atomic_load_n(&enough, __ATOMIC_SEQ_CST)) dlrs_workers_run(workers, 8, adds_one, &mine);
  return NULL;
}

static void forks(void) {
  void *workers = workers_of(3);
  pthread_t thread;
  user of;
  int i;
  t_context = "fork";
  makes_user(&of, workers);
  in_child(&of, workers);
  copies(&of, 300, 32);
  /* Locks may be held at that moment. */
  if (pthread_create(&thread, NULL, keeps_busy, workers) != 0) abort();
  for (i = 0; i < 30; ++i) in_child(&of, workers);
  __atomic_store_n(&enough, 1, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  copies(&of, 300, 32);
  ends_user(&of);
  dlrs_workers_free(workers);
}

int main(int argc, char **argv) {
  long divisor = argc > 1 ? atol(argv[1]) : 1;
  int before = threads_listed();
  long live = inject_live();
  arguments();
  no_threads_or_memory();
  small_jobs(2, 1000000 / divisor);
  small_jobs(5, 20000 / divisor);
  at_the_same_time();
  values();
  three_users();
  free_while_busy();
  /* qemu-user's child of a process with threads cannot start one. */
  if (argc < 3 || strcmp(argv[2], "emulated") != 0) forks();
  t_context = "nothing is left";
  CHECK(threads_left(before) <= before);
  CHECK(inject_live() <= live + 8); /* the C library's, for its threads */
  return t_close();
}
#endif
