/* Shared by both drivers (driver.c): everything except the vendors' names and types. */
#ifndef C_TESTS_STANDIN_CORE_H_
#define C_TESTS_STANDIN_CORE_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "standin.h"

#include <pthread.h>
#include <stdlib.h>

/* Not the program's malloc, whose calls tests count and make fail. */
#ifndef __SANITIZE_ADDRESS__
void *__libc_malloc(size_t nbytes);
void *__libc_calloc(size_t n, size_t nbytes);
void __libc_free(void *memory);
#define malloc __libc_malloc
#define calloc __libc_calloc
#define free __libc_free
#endif

/* The numbers are the same in CUDA and HIP. */
enum {
  OK = 0,
  E_VALUE = 1,
  E_NOMEM = 2,
  E_NOT_INITIALIZED = 3,
  E_DEINITIALIZED = 4,
  E_NO_DEVICE = 100,
  E_DEVICE = 101,
  E_IMAGE = 200,
  E_CONTEXT = 201,
  E_HANDLE = 400,
  E_NOT_FOUND = 500,
  E_NOT_READY = 600,
  E_ILLEGAL_ADDRESS = 700,
  E_CONTEXT_DESTROYED = 709,
  E_REGISTERED = 712,
  E_NOT_REGISTERED = 713,
  E_NOT_SUPPORTED = 801,
  E_CAPTURE_UNSUPPORTED = 900,
  E_CAPTURE_INVALIDATED = 901,
  E_CAPTURE_MERGE = 902,
  E_CAPTURE_UNMATCHED = 903,
  E_CAPTURE_UNJOINED = 904,
  E_CAPTURE_ISOLATION = 905,
  E_CAPTURE_IMPLICIT = 906,
  E_CAPTURED_EVENT = 907
};

/* ---- Calls ----------------------------------------------------------------------------------*/

typedef struct function {
  const char *name;
  long calls;
  int known;
  struct function *next;
} function;

/* Properties of a call. */
enum {
  EARLY = 1,    /* works before initialisation */
  CURRENT = 2,  /* needs a current context that is not lost */
  RELEASES = 4, /* releases something, or waits: does so even when it reports an error */
  KEEPS = 16,   /* bookkeeping on the host, which works on a broken device */
  UNSAFE = 8    /* not permitted while this thread, or with a global capture any thread, captures */
};

typedef struct guard {
  int injected; /* the code to return at the end */
  int garbage;  /* outputs are corrupted: 1 + mode */
} guard;

extern _Thread_local int last_error; /* the result of hipGetLastError */

int enter(guard *self, function *called, unsigned like);
void leave(guard *self);
int done(guard *self, int code);
int garbage(const guard *self, void *out, size_t nbytes);

#define CALL(result, like)                                     \
  static function called = {__func__, 0, 0, 0};                \
  guard self __attribute__((cleanup(leave)));                  \
  {                                                            \
    int refused = enter(&self, &called, (like));               \
    if (refused != OK) return (result)refused;                 \
  }
/* An output: must not be NULL, and may be corrupted. */
#define OUT(result, out)                                                   \
  if ((out) == NULL) return (result)E_VALUE;                               \
  if (self.garbage) return (result)garbage(&self, (void *)(out), sizeof *(out))
#define DONE(result, code) return (result)done(&self, (code))

void core_hang(void);
void core_lock(void);
void core_unlock(void);

extern int is_hip; /* 0 for CUDA, else the major version of HIP */
void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
unsigned chance(unsigned below);

/* ---- Settings -------------------------------------------------------------------------------*/

typedef struct settings {
  size_t memory[STANDIN_DEVICES_MAX];
  long version, devices, seed, hang, fault_after, fault_code, exiting;
  long pools, concurrent, free_waits, exclusive, host_device;
} settings;
extern settings set;
extern standin_stats_t stats;

/* ---- Devices and contexts -------------------------------------------------------------------*/

typedef struct context {
  uint64_t handle;
  int device, primary, retains, lost; /* lost: the sticky error */
  int green, holds; /* CUDA: part of a device's processors; on how many stacks of `owner` */
  pthread_t owner;
} context;

int core_init(void);
int is_device(int device);
context *context_of(const void *handle);
void *context_handle(const context *self);
context *current(void); /* NULL: none */
int context_retain(int device, void **out);
int context_release(int device);
int context_create(int device, void **out);
int context_destroy(void *handle);
int green_create(int device, void **out);
int green_destroy(void *handle);
uint64_t context_base(const context *self); /* the primary one of a green context */
int context_push(void *handle);
int context_pop(void **out);
int context_set(void *handle);
int context_active(int device);
int device_set(int device); /* HIP */
int device_get(void);       /* HIP */
int attribute(int *out, int attribute, int device);

/* ---- Memory ---------------------------------------------------------------------------------*/

enum { DEVICE_MEMORY = 1, PINNED, MANAGED_MEMORY, REGISTERED };

typedef struct block {
  unsigned char *address, *bytes; /* the driver's address, and the host's */
  unsigned char *map;             /* with its red zones; NULL for registered memory */
  unsigned char *map_bytes;
  unsigned char *alias;           /* its address for kernels, if that differs */
  unsigned char *alias_map;       /* its pages */
  size_t alias_mapped;
  size_t nbytes, mapped;
  int kind, device;
  uint64_t context;
  int pool;     /* from a stream-ordered allocation */
  int unready;  /* ... that has not executed */
  int dying;    /* its stream-ordered free is enqueued */
  int in_use;   /* pending operations that use it */
} block;

int memory_new(int kind, size_t nbytes, int device, void **out);
int memory_free(void *address, unsigned kinds); /* kinds: 1 << kind */
int memory_register(void *address, size_t nbytes);
int memory_unregister(void *address);
block *block_of(const void *address);        /* the live block that contains the address */
block *block_seen(const void *address);      /* the same by its address for kernels */
int memory_seen(const block *self, const context *from); /* whether kernels of a context reach it */
int freed_before(const void *address);       /* a block that is no longer live contained it */
void block_drop(block *self);
void memory_check(void);
void memory_lose(uint64_t context);
size_t memory_used(int device);

/* ---- Streams, events, work ------------------------------------------------------------------*/

int stream_new(context *on, unsigned flags, void **out);
int stream_destroy(void *handle);
int stream_sync(void *handle);
int stream_query(void *handle);
int stream_wait(void *handle, void *event);
int stream_context(void *handle, context **out);
int stream_capturing(void *handle, int *status);
int capture_begin(void *handle, int mode);
int capture_end(void *handle, void **graph);
int capture_exchange(int *mode);
int capture_forbids(void); /* an unsafe call: invalidates the captures that forbid it */
int capture_forbids_sync(const context *of); /* the same for a wait for a context */
int context_sync(context *self);
void context_forget_work(context *self);
int graph_launch(void *graph, void *stream);
int graph_destroy(void *graph);

int event_new(void **out);
int event_destroy(void *handle);
int event_record(void *handle, void *stream);
int event_query(void *handle);
int event_sync(void *handle);

/* 2-D; dst_kind and src_kind: 1 host, 2 device, 4 determined by the addresses. `peer`: the call
 * names both devices. */
typedef struct copy2d {
  unsigned char *dst;
  const unsigned char *src;
  size_t dst_pitch, src_pitch, width, height;
  int dst_kind, src_kind, peer;
} copy2d;
int copy_check(const copy2d *copy, void *stream);
int copy_enqueue(const copy2d *copy, void *stream);
int alloc_enqueue(size_t nbytes, void *stream, void **out);
int free_enqueue(void *address, void *stream);
int fill_enqueue(void *address, int value, size_t nbytes, void *stream);
int host_enqueue(void (*function)(void *), void *with, void *stream);
int launch_enqueue(void *function, const unsigned size[6], void *stream, void **args);
void wait_for_block(block *self);
int run(long operations);
void drop_work(void);

int image_check(const char *text);
int module_new(const void *image, void **out);
int module_destroy(void *handle);
int module_function(void *module, const char *name, void **out);
void module_lose(uint64_t context);

/* Handles are numbers that are not valid pointers. */
enum { CONTEXT = 1, STREAM, EVENT, MODULE, FUNCTION, GRAPH };
uint64_t handle_new(int kind);
/* Tables of structs that start with their handle, 0 where a place is free: a new one, all 0 but that;
 * and the one of a handle. NULL: none. */
void *place_new(void *table, size_t n, size_t nbytes, int kind);
void *place_of(void *table, size_t n, size_t nbytes, const void *handle);
#define NEW(table, kind) place_new(table, sizeof table / sizeof *table, sizeof *table, kind)
#define FIND(table, handle) place_of(table, sizeof table / sizeof *table, sizeof *table, handle)
#define handle_of(self) ((void *)(uintptr_t)(self)->handle)

#endif
