/* Threads and memory, by system calls; and dlrs_conform_check.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#if defined(__linux__)
#include <stdlib.h> /* defines __GLIBC__ with glibc */
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#endif

#include "kit.h"
#include "rules.h"

#if defined(_WIN32)
#include <process.h>
#include <windows.h>
typedef uintptr_t thread;
#define THREAD unsigned __stdcall
static SRWLOCK lock = SRWLOCK_INIT;
void kit_lock(void) { AcquireSRWLockExclusive(&lock); }
void kit_unlock(void) { ReleaseSRWLockExclusive(&lock); }
#else
#include <pthread.h>
#include <unistd.h>
typedef pthread_t thread;
#define THREAD void *
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void kit_lock(void) { pthread_mutex_lock(&lock); }
void kit_unlock(void) { pthread_mutex_unlock(&lock); }
#endif

typedef struct task {
  kit k;
  dlrs_conform_verdict verdict;
  kit_work *work;
  void *argument;
} task;

static THREAD run(void *argument) {
  task *t = (task *)argument;
  t->verdict.outcome = t->work(&t->k, t->argument);
  return 0;
}

static int start(thread *one, task *t) {
#if defined(_WIN32)
  *one = _beginthreadex(NULL, 0, run, t, 0, NULL);
  return *one != 0;
#else
  return pthread_create(one, NULL, run, t) == 0;
#endif
}

static void join(thread one) {
#if defined(_WIN32)
  WaitForSingleObject((HANDLE)one, INFINITE);
  CloseHandle((HANDLE)one);
#else
  pthread_join(one, NULL);
#endif
}

#define MOST 8

int32_t kit_threads(kit *k, int count, kit_work *work, void *argument) {
  task tasks[MOST];
  thread threads[MOST];
  int started = 0;
  memset(tasks, 0, sizeof tasks);
  for (; started < count && started < MOST; started++) {
    task *t = &tasks[started];
    t->k = *k;
    t->k.verdict = &t->verdict;
    t->work = work;
    t->argument = argument;
    if (!start(&threads[started], t)) break;
  }
  for (int i = 0; i < started; i++) join(threads[i]);
  if (started < count) return kit_skip(k, "no thread to be had");
  for (int i = 0; i < count; i++) {
    if (tasks[i].verdict.outcome == 0) continue;
    *k->verdict = tasks[i].verdict;
    k->cause = tasks[i].k.cause;
    return k->verdict->outcome;
  }
  return 0;
}

/* A sanitizer's quarantine of freed memory looks like a leak. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

int64_t kit_resident(void) {
#if defined(__linux__) && !defined(SANITIZED)
  long long all, resident = -1;
  FILE *file;
#if defined(__GLIBC__) /* returns the memory that malloc caches */
  malloc_trim(0);
#endif
  file = fopen("/proc/self/statm", "r");
  if (file == NULL) return -1;
  if (fscanf(file, "%lld %lld", &all, &resident) != 2) resident = -1;
  fclose(file);
  return resident < 0 ? -1 : resident * sysconf(_SC_PAGESIZE);
#else
  return -1;
#endif
}

/* ---- the interface --------------------------------------------------------------------------*/

static const struct {
  dlrs_conform_rule rule;
  int32_t (*judge)(kit *k);
} kit_rules[] = {
#define ROW(id, severity, source, ends, text) \
  {{#id, #severity, source, text, ends}, dlrs_conform_rule_##id},
    KIT_RULES(ROW)
};

uint32_t dlrs_conform_count(void) { return sizeof kit_rules / sizeof kit_rules[0]; }

const dlrs_conform_rule *dlrs_conform_rule_at(uint32_t index) {
  return index < dlrs_conform_count() ? &kit_rules[index].rule : NULL;
}

/* A library that never frees violates one rule, not all: another rule that fails for that reason is
 * skipped. C01 is as simple as C04. */
static void explain(kit *k, uint32_t index) {
  const char *id = kit_rules[index].rule.id;
  char failed[sizeof k->verdict->text];
  dlrs_conform_verdict other;
  kit simple = *k;
  uint32_t i = 0;
  while (strcmp(kit_rules[i].rule.id, k->cause) != 0) i++;
  if (i == index || (strcmp(id, "C01") == 0 && strcmp(k->cause, "C04") == 0)) return;
  memset(&other, 0, sizeof other);
  simple.verdict = &other;
  simple.cause = NULL;
  if (kit_rules[i].judge(&simple) != DLRS_CONFORM_FAIL || simple.cause == NULL) return;
  memcpy(failed, k->verdict->text, sizeof failed);
  kit_skip(k, k->cause);
  snprintf(k->verdict->text, sizeof k->verdict->text, "%s judges it: %.150s", k->cause, failed);
}

int32_t dlrs_conform_check(const dlrs_conform_subject *subject, uint32_t index,
                           dlrs_conform_verdict *verdict) {
  kit k;
  if (subject == NULL || verdict == NULL || index >= dlrs_conform_count()) return -1;
  if (subject->struct_size < sizeof(size_t) || subject->struct_size > sizeof k.subject) return -1;
  memset(&k, 0, sizeof k);
  memset(verdict, 0, sizeof *verdict);
  memcpy(&k.subject, subject, subject->struct_size);
  k.verdict = verdict;
  verdict->outcome = kit_rules[index].judge(&k);
  if (verdict->outcome == DLRS_CONFORM_FAIL && k.cause != NULL) explain(&k, index);
  return 0;
}
