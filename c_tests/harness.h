/* Shared by all C tests: checks that count, inputs between guard pages, deleters that count, and
 * the contract of a failing call (nothing taken, nothing written, nothing leaked). */
#ifndef C_TESTS_HARNESS_H_
#define C_TESTS_HARNESS_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlpack_rs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Checks ---------------------------------------------------------------------------------*/

/* A context for messages: the row or scenario that is running. */
extern const char *t_context;

int t_check(int ok, const char *file, int line, const char *what);
int t_equal(long long got, long long want, const char *file, int line, const char *what);
/* Prints "N passed, N failed", and returns the exit status. Frees the harness's memory. */
int t_close(void);
/* The same, with text appended to the line. */
int t_close_with(const char *more);

#define CHECK(x) t_check((x) ? 1 : 0, __FILE__, __LINE__, #x)
#define EQUAL(got, want) \
  t_equal((long long)(got), (long long)(want), __FILE__, __LINE__, #got " == " #want)

/* ---- Calls ----------------------------------------------------------------------------------*/

/* The error carrier of the calls below. */
extern dlrs_error t_error;
#define ERR (&t_error)

/* Memory that a failing call must leave unchanged; and a pointer variable that must be NULL
 * afterwards when it is an argument of the call. */
void t_watch(const void *memory, size_t nbytes);
void t_watch_result(void *variable, const char *text);
#define t_result(variable) t_watch_result(variable, #variable)
void t_unwatch(void);

/* Others allocate too, such as a driver's threads: the number of live blocks is not checked. */
extern int t_heap_shared;

void t_before(void);
int t_refused(const char *file, int line, const char *call, int32_t got, int32_t want,
              int32_t argument, int32_t field, int32_t dimension);
int t_worked(const char *file, int line, const char *call, int32_t got);

/* -2 for "any": argument, field and dimension of the error are then not checked. */
#define ANY (-2)
/* The call fails with this status and error, and changes nothing. It must pass ERR. */
#define REFUSED(status, argument, field, dimension, call) \
  (t_before(), t_refused(__FILE__, __LINE__, #call, (call), status, argument, field, dimension))
/* The same in short: REJECTS(BAD_ARG, 2, NONE, -1, call). */
#define DLRS_FIELD_ANY ANY
#define REJECTS(status, argument, field, dimension, call) \
  REFUSED(DLRS_##status, argument, DLRS_FIELD_##field, dimension, call)
/* The call succeeds, and leaves the error carrier unchanged. */
#define WORKS(call) (t_before(), t_worked(__FILE__, __LINE__, #call, (call)))

/* ---- Memory between guard pages -------------------------------------------------------------*/

/* nbytes that end right before (or start right behind) an inaccessible page. */
void *t_before_guard(size_t nbytes);
void *t_behind_guard(size_t nbytes);
/* An inaccessible page. */
void *t_guard(void);
/* Unmaps all pages of the functions above. */
void t_guards_free(void);

/* ---- Tensors of a foreign producer ----------------------------------------------------------*/

/* How often the deleters below, or t_count, have run. */
extern long t_deleted;
void t_count(void *context); /* also adds 1 to *(int *)context, when there is one */
void t_delete_versioned(DLManagedTensorVersioned *self);
void t_delete_legacy(DLManagedTensor *self);

/* A row-major float32 tensor of 2 x 3 on the CPU with values 0, 1, ... 5, in both kinds. The
 * deleters count and free nothing. */
typedef struct t_tensor {
  DLManagedTensorVersioned managed;
  DLManagedTensor legacy;
  int64_t shape[2];
  int64_t strides[2];
  float values[6];
} t_tensor;
void t_make(t_tensor *tensor);

DLDevice t_device(int32_t device_type, int32_t device_id);
DLDataType t_dtype(int code, int bits, int lanes);
#define CPU t_device(kDLCPU, 0)
#define F32 t_dtype(kDLFloat, 32, 1)

/* A bare tensor. */
DLTensor t_describe(void *data, DLDataType dtype, int32_t ndim, int64_t *shape, int64_t *strides);

/* A versioned tensor around a bare one, whose deleter counts and frees nothing. */
DLManagedTensorVersioned t_managed(DLTensor tensor, uint64_t flags);
/* Its strides for a row-major layout. */
void t_compact(int32_t ndim, const int64_t *shape, int64_t *strides);

/* ---- Memory of an allocator, or of a backend ------------------------------------------------*/

/* Blocks know their request: they must be freed by their owner, with the same arguments. On any
 * thread. */
typedef struct t_source {
  long given, taken, strange; /* blocks; how many were freed otherwise */
  int gives_null, gives_odd;
  unsigned char dirt; /* the bytes of new memory; 0: as malloc leaves it */
} t_source;
typedef struct t_request {
  void *memory;
  t_source *owner;
  uint64_t nbytes, align_bytes;
  DLDevice device;
} t_request;
t_request t_request_of(const void *data);
dlrs_allocator t_allocator(t_source *source);
/* One that has a device 0, and copies blocks only. */
dlrs_backend t_backend(t_source *source, const char *name);

/* ---- Allocations (inject.c) -----------------------------------------------------------------*/

/* Whether allocations are counted and can be made to fail (not under a sanitizer). */
int inject_works(void);
/* Live blocks, and calls so far, of the whole process. */
long inject_live(void);
long inject_calls(void);
/* The k-th allocation from now on (k >= 1) fails; with `forever`, all later ones too. 0: none. */
void inject_arm(long k, int forever);
/* Whether a failure was injected since inject_arm; ends the injection. */
int inject_disarm(void);
/* Makes pthread_create fail with EAGAIN, after `fail` - 1 more threads, until it is called with 0;
 * returns how often it did. */
long inject_threads(int fail);

#ifdef __cplusplus
}
#endif

#endif
