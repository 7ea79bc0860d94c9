/*!
 * \file dlpack_rs_conform.h
 * \brief Does a library keep the rules of DLPack? The conformance kit for those without Python.
 *
 * A library under test is a `dlrs_conform_subject`: callbacks that make, export, take and read its
 * tensors. One call of dlrs_conform_check judges it by one rule, so that a runner gives each rule a
 * process of its own and a crash is a verdict; share/dlpack_rs/conform has the sources of the kit
 * and such a runner. The rules, their texts and identifiers are those of `python -m dlpack_rs
 * conform`. Neither this header nor the sources need libdlpack_rs; they need threads, C99 or C++11.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_CONFORM_H_
#define DLPACK_RS_CONFORM_H_

#include <stddef.h>

#include "dlpack.h"

#if !defined(DLPACK_MAJOR_VERSION) || DLPACK_MAJOR_VERSION != 1
#error "dlpack_rs_conform.h needs dlpack.h of DLPack 1.x; another one was included before it"
#endif

/* DLPack 1.0 and 1.1, if such a dlpack.h was included before, lack these names. */
#if DLPACK_MINOR_VERSION < 2
typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;
typedef struct DLPackExchangeAPI DLPackExchangeAPI;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A library under test. A callback that is NULL skips the rules that need it. Callbacks answer 0,
 * or any other number where the library refuses; `void *tensor` is a tensor of the library,
 * whatever that is. Rules with threads call them on several at a time.
 */
typedef struct dlrs_conform_subject {
  /** sizeof this struct; later members count as NULL. */
  size_t struct_size;
  /** For reports. */
  const char *name;
  const char *version;
  /** Handed to each callback. */
  void *context;
  /** Makes a tensor with the shape, dtype and elements of `values`, which is compact host memory
   * that lives during the call, in memory of its own. `flags` is 0, or for a tensor that cannot be
   * written DLPACK_FLAG_BITMASK_READ_ONLY, which a library without such tensors refuses. */
  int32_t (*make)(void *context, const DLTensor *values, uint64_t flags, void **tensor);
  /** Exports a tensor, as `__dlpack__(max_version=(1, 3))` does. */
  int32_t (*produce)(void *context, void *tensor, DLManagedTensorVersioned **out);
  /** Exports a tensor as a legacy one, as `__dlpack__()` does. */
  int32_t (*produce_legacy)(void *context, void *tensor, DLManagedTensor **out);
  /** Exports a copy, as `__dlpack__(max_version=(1, 3), copy=True)` does. */
  int32_t (*produce_copy)(void *context, void *tensor, DLManagedTensorVersioned **out);
  /** Takes another library's tensor: 0, and its deleter is called when the result no longer needs
   * it. Another number, and it is refused; whether the callback then calls the deleter is left to
   * it, as to the consumer of a capsule, which may leave that to the capsule. */
  int32_t (*consume)(void *context, DLManagedTensorVersioned *managed, void **tensor);
  int32_t (*consume_legacy)(void *context, DLManagedTensor *managed, void **tensor);
  /** Describes a tensor as it is now: its memory, shape and strides, which stay valid until the
   * tensor changes or is dropped, and whether it can be written (DLPACK_FLAG_BITMASK_READ_ONLY).
   * Where it is NULL, exports are read instead. */
  int32_t (*read)(void *context, void *tensor, DLTensor *out, uint64_t *flags);
  /** Makes a tensor of 3 x 4 one of 12, in place. */
  int32_t (*reshape)(void *context, void *tensor);
  /** Frees a tensor. */
  void (*drop)(void *context, void *tensor);
  /** The library's C exchange API, and how to release an object that it made: Py_DecRef, unless the
   * objects are not Python's. Rules about it are judged attached to Python. */
  const DLPackExchangeAPI *exchange_api;
  void (*object_drop)(void *object);
  /** A tensor of the library as such an object: 3 x 4 float32 with the elements 0 to 11. */
  void *object;
} dlrs_conform_subject;

/** What becomes of a rule. The last three speak against the library, unless the rule is INFO. */
typedef enum dlrs_conform_outcome {
  DLRS_CONFORM_PASS = 0,
  /** Kept, and how is worth a remark: "refused". */
  DLRS_CONFORM_NOTE = 1,
  /** The library has nothing that the rule is about. */
  DLRS_CONFORM_SKIP = 2,
  DLRS_CONFORM_FAIL = 3,
  /** The process ended: a runner says so. */
  DLRS_CONFORM_CRASH = 4,
  /** The process did not end in time: a runner says so. */
  DLRS_CONFORM_HANG = 5
} dlrs_conform_outcome;

typedef struct dlrs_conform_verdict {
  /** A dlrs_conform_outcome. */
  int32_t outcome;
  /** Why; empty where there is nothing to say. */
  char text[200];
} dlrs_conform_verdict;

typedef struct dlrs_conform_rule {
  /** "P15"; never used again for another rule. */
  const char *id;
  /** "MUST": other programs break. "SHOULD": what consumers rely on. "ROBUST": input that no
   * correct producer gives. "INFO": counts for nothing. */
  const char *severity;
  /** The text that demands it, and where that is; the url may be empty. */
  const char *source;
  const char *url;
  const char *text;
  /** Not 0: that the process ends well afterwards, by exit(), belongs to the rule. */
  int32_t ends;
} dlrs_conform_rule;

/** How many rules there are. */
uint32_t dlrs_conform_count(void);

/** A rule by its number, which may change with the version, unlike its identifier; NULL behind the
 * last one. */
const dlrs_conform_rule *dlrs_conform_rule_at(uint32_t index);

/**
 * Judges a library by one rule.
 *
 * \param subject  The library.
 * \param index    The rule, below dlrs_conform_count().
 * \param verdict  Receives what became of it.
 * \return 0, or -1 where an argument is NULL or out of range; then nothing is written.
 *
 * Memory: what the rule's tensors need is kept until the process ends: a library that breaks a rule
 * may look at it at any time.
 */
int32_t dlrs_conform_check(const dlrs_conform_subject *subject, uint32_t index,
                           dlrs_conform_verdict *verdict);

/**
 * Judges a C exchange API by one rule: dlrs_conform_check with a subject that has nothing else.
 *
 * \param api      The exchange API.
 * \param object   A tensor of its library, as in dlrs_conform_subject; NULL skips what needs one.
 * \param drop     Releases an object; NULL skips checks that make one.
 * \param index    The rule; those about other things are skipped.
 * \param verdict  Receives what became of it.
 * \return As dlrs_conform_check.
 */
int32_t dlrs_conform_exchange_api(const DLPackExchangeAPI *api, void *object,
                                  void (*drop)(void *object), uint32_t index,
                                  dlrs_conform_verdict *verdict);

/**
 * The one symbol that the runner looks for in a shared library: `dlpack_rs-conform ./libmine.so`.
 * Whoever is to be judged defines it.
 */
#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const dlrs_conform_subject *dlrs_conform_get_subject(void);

/* ---- runner.c: POSIX only -------------------------------------------------------------------*/

/** Answers the subject, or NULL where there is none. It is called in each rule's process, so that
 * the library is used by no process that forks. */
typedef const dlrs_conform_subject *dlrs_conform_getter(void);

/**
 * dlrs_conform_check in a process of its own: what ends that is a verdict, too.
 *
 * \param get      Answers the subject.
 * \param index    The rule.
 * \param seconds  After which the process is ended, and the verdict is DLRS_CONFORM_HANG.
 * \param name     Receives the subject's name and version, where it is not NULL: 100 bytes.
 * \param verdict  Receives what became of the rule.
 * \return As dlrs_conform_check; -1 also without a subject or a process.
 */
int32_t dlrs_conform_judge(dlrs_conform_getter *get, uint32_t index, uint32_t seconds, char *name,
                           dlrs_conform_verdict *verdict);

/**
 * The program: judges a subject by the rules that the arguments select, and reports. `--help` says
 * what they are.
 *
 * \return The exit status: 0 no violation but known ones, 1 violations, or known ones that are
 * gone, 2 wrong arguments, or no subject.
 */
int dlrs_conform_main(dlrs_conform_getter *get, int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_RS_CONFORM_H_ */
