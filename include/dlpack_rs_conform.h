/*!
 * \file dlpack_rs_conform.h
 * \brief DLPack's conformance kit for libraries in C and C++, without Python.
 *
 * A library under test is a `dlrs_conform_subject`: callbacks that make, export, take and read its
 * tensors. One call of dlrs_conform_check checks one rule, so that a runner can run each rule in a
 * separate process, where a crash is a verdict; share/dlpack_rs/conform has the sources of the kit
 * and such a runner. The rules, their texts and identifiers are those of `python -m dlpack_rs
 * conform`. Neither this header nor the sources need libdlpack_rs; they need threads, C99 or
 * C++11.
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

/** A view of a tensor x of 3 x 4, as NumPy writes it. */
typedef enum dlrs_conform_view {
  DLRS_CONFORM_TRANSPOSED = 0, /* x.T */
  DLRS_CONFORM_COLUMNS = 1,    /* x[:, ::2] */
  DLRS_CONFORM_REVERSED = 2,   /* x[::-1] */
  DLRS_CONFORM_INNER = 3,      /* x[1:, 1:] */
  DLRS_CONFORM_ROWS = 4,       /* x[1:] */
  DLRS_CONFORM_BROADCAST = 5,  /* broadcast_to(x, (2, 3, 4)) */
  DLRS_CONFORM_VIEWS = 6       /* how many there are */
} dlrs_conform_view;

/**
 * A library under test. A callback that is NULL skips the rules that need it. Callbacks return 0,
 * or another number if the library rejects the call; `void *tensor` is a tensor of the library, of
 * any type. Rules with threads call them on several at a time.
 */
typedef struct dlrs_conform_subject {
  /** sizeof this struct; later members count as NULL. */
  size_t struct_size;
  /** For reports. */
  const char *name;
  const char *version;
  /** Passed to each callback. */
  void *context;
  /** Makes a tensor with the shape, dtype and elements of `values`, which is compact host memory
   * that is valid during the call, in new memory. `flags` is 0, or DLPACK_FLAG_BITMASK_READ_ONLY
   * for a read-only tensor, which a library without such tensors rejects. */
  int32_t (*make)(void *context, const DLTensor *values, uint64_t flags, void **tensor);
  /** Exports a tensor, as `__dlpack__(max_version=(1, 3))` does. */
  int32_t (*produce)(void *context, void *tensor, DLManagedTensorVersioned **out);
  /** Exports a tensor as a legacy one, as `__dlpack__()` does. */
  int32_t (*produce_legacy)(void *context, void *tensor, DLManagedTensor **out);
  /** Exports a copy, as `__dlpack__(max_version=(1, 3), copy=True)` does. */
  int32_t (*produce_copy)(void *context, void *tensor, DLManagedTensorVersioned **out);
  /** Imports another library's tensor: 0, and its deleter is called when the result no longer needs
   * it. Another number rejects it; the callback may then call the deleter or not, as a consumer of
   * a capsule, which may leave that to the capsule. */
  int32_t (*consume)(void *context, DLManagedTensorVersioned *managed, void **tensor);
  int32_t (*consume_legacy)(void *context, DLManagedTensor *managed, void **tensor);
  /** Describes the current state of a tensor: its memory, shape and strides, which stay valid
   * until the tensor changes or is freed, and whether it can be written
   * (DLPACK_FLAG_BITMASK_READ_ONLY). If NULL, exports are read instead. */
  int32_t (*read)(void *context, void *tensor, DLTensor *out, uint64_t *flags);
  /** Reshapes a tensor of 3 x 4 to 12, in place. */
  int32_t (*reshape)(void *context, void *tensor);
  /** Frees a tensor. */
  void (*drop)(void *context, void *tensor);
  /** The library's C exchange API, and how to release an object that it made: Py_DecRef, unless the
   * objects are not Python's. Its rules are checked attached to Python. */
  const DLPackExchangeAPI *exchange_api;
  void (*object_drop)(void *object);
  /** A tensor of the library as such an object: 3 x 4 float32 with the elements 0 to 11. */
  void *object;
  /** Makes a view of a tensor, a dlrs_conform_view: a tensor of its own, which is freed as others
   * are, before the one that it views or after it. */
  int32_t (*view)(void *context, void *tensor, int32_t kind, void **out);
} dlrs_conform_subject;

/** Result of a rule. The last three count against the library, unless the rule is INFO. */
typedef enum dlrs_conform_outcome {
  DLRS_CONFORM_PASS = 0,
  /** Satisfied, with a remark: "refused". */
  DLRS_CONFORM_NOTE = 1,
  /** The rule does not apply to the library. */
  DLRS_CONFORM_SKIP = 2,
  DLRS_CONFORM_FAIL = 3,
  /** The process crashed: set by a runner. */
  DLRS_CONFORM_CRASH = 4,
  /** The process did not end in time: set by a runner. */
  DLRS_CONFORM_HANG = 5
} dlrs_conform_outcome;

typedef struct dlrs_conform_verdict {
  /** A dlrs_conform_outcome. */
  int32_t outcome;
  /** The reason; may be empty. */
  char text[200];
} dlrs_conform_verdict;

typedef struct dlrs_conform_rule {
  /** "P15"; never reused for another rule. */
  const char *id;
  /** "MUST": other programs break. "SHOULD": what consumers rely on. "ROBUST": input that no
   * correct producer exports. "INFO": does not count. */
  const char *severity;
  /** The text that requires it, and its location; the url may be empty. */
  const char *source;
  const char *url;
  const char *text;
  /** Not 0: the rule includes that the process ends well afterwards, by exit(). */
  int32_t ends;
} dlrs_conform_rule;

/** The number of rules. */
uint32_t dlrs_conform_count(void);

/** A rule by its number, which may change with the version, unlike its identifier; NULL after the
 * last one. */
const dlrs_conform_rule *dlrs_conform_rule_at(uint32_t index);

/**
 * Checks one rule of a library.
 *
 * \param subject  The library.
 * \param index    The rule, below dlrs_conform_count().
 * \param verdict  Receives the result.
 * \return 0, or -1 where an argument is NULL or out of range; then nothing is written.
 *
 * Memory: that of the rule's tensors is never freed, since a library that breaks a rule may access
 * it at any time.
 */
int32_t dlrs_conform_check(const dlrs_conform_subject *subject, uint32_t index,
                           dlrs_conform_verdict *verdict);

/**
 * The symbol that the runner loads from a shared library: `dlpack_rs-conform ./libmine.so`. The
 * library under test defines it.
 */
#if defined(_WIN32)
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const dlrs_conform_subject *dlrs_conform_get_subject(void);

/* ---- runner.c: POSIX only -------------------------------------------------------------------*/

/** Returns the subject, or NULL if there is none. It is called in each rule's process, so that no
 * process that forks uses the library. */
typedef const dlrs_conform_subject *dlrs_conform_getter(void);

/**
 * dlrs_conform_check in a separate process: a crash is a verdict, too.
 *
 * \param get      Returns the subject.
 * \param index    The rule.
 * \param seconds  Time limit: the process is then ended, and the verdict is DLRS_CONFORM_HANG.
 * \param name     Receives the subject's name and version, if not NULL: 100 bytes.
 * \param verdict  Receives the result.
 * \return As dlrs_conform_check; -1 also without a subject or a process.
 */
int32_t dlrs_conform_judge(dlrs_conform_getter *get, uint32_t index, uint32_t seconds, char *name,
                           dlrs_conform_verdict *verdict);

/**
 * The program: checks the rules that the arguments select, and reports. `--help` lists them.
 *
 * \return The exit status: 0 no violation but known ones, 1 violations, or known ones that
 * no longer fail, 2 wrong arguments, or no subject.
 */
int dlrs_conform_main(dlrs_conform_getter *get, int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_RS_CONFORM_H_ */
