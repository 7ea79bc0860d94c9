/* Shared by the tests of devices: direct calls of the driver, next to the library, to make and to
 * inspect the library's operands; and rows that run each in a separate process.
 *
 * A driver is a stand-in (c_tests/standin) or a real one. A real one has no controls: rows that
 * need them say so (STANDIN), and are counted as left out. */
#ifndef C_TESTS_GPU_H_
#define C_TESTS_GPU_H_

#include "../standin/standin.h"
#include "harness.h"

typedef struct gpu_driver {
  const char *name;                 /* "cuda", "rocm" */
  int32_t type, pinned, managed;    /* DLPack's device types; managed 0: DLPack has none */
  int hip;                          /* the major version, 0 for CUDA */
  int standin;
  void *library;
  int (*ctl)(int, long, long, const char *);
  void (*stats)(standin_stats_t *);
  long (*calls)(const char *);
  const char *(*violation)(void);
  void *(*bytes)(const void *);
  size_t (*log)(char *, size_t);
} gpu_driver;
extern gpu_driver G;

/* Loads the driver that the library would find, "cuda" or "rocm"; returns whether there is one. Starts nothing. */
int gpu_open(const char *name);
/* The same of a program's first argument; else the program ends. */
void gpu_begin(int argc, char **argv);

#define DEV(i) t_device(G.type, (i))
/* Functions that both vendors have, by name. */
#define VENDOR(function) (G.hip ? "hip" function : "cu" function)
#define LAUNCH (G.hip ? "hipModuleLaunchKernel" : "cuLaunchKernel")

/* ---- The driver's own functions. Devices are numbers; errors end the test ---------------------*/

void gpu_start(void);
int gpu_count(void);
/* Options of a copy; fields that are not named are 0. */
dlrs_copy_options gpu_options(void *src_stream, void *dst_stream, uint32_t flags);
#define U8 t_dtype(kDLUInt, 8, 1)
/* Where memory is: on a device, by its number, or on the host: plain, pinned, managed by device 0 or 1. */
enum { PLAIN_HOST = -1, PINNED_HOST = -2, MANAGED_HOST = -3, MANAGED_HOST_1 = -4 };
void *gpu_room(int place, size_t nbytes);
void gpu_leave(int place, void *data);
int gpu_device_of(int place); /* the device that works on it */
DLDevice gpu_place(int place);
#define gpu_alloc(device, nbytes) gpu_room(device, nbytes)
#define gpu_pinned(nbytes) gpu_room(PINNED_HOST, nbytes)
/* A tensor of these elements there; without strides it is compact. */
DLTensor gpu_tensor_at(int place, void *data, DLDataType dtype, int32_t ndim, int64_t *shape, int64_t *strides);
/* Immediately; a stand-in's queue is unchanged. */
void gpu_write(int device, void *dst, const void *src, size_t nbytes);
void gpu_read(int device, void *dst, const void *src, size_t nbytes);
/* Where the host can read the bytes of an address: a stand-in's device memory is elsewhere. */
unsigned char *seen(const void *address);
void *gpu_stream(int device, int nonblocking);
void gpu_stream_free(int device, void *stream);
/* Sets bytes, enqueued on a stream. */
void gpu_fill(int device, void *stream, void *dst, int byte, size_t nbytes);
/* Copies bytes, enqueued; the addresses determine the devices. */
void gpu_copy(int device, void *stream, void *dst, const void *src, size_t nbytes);
int gpu_sync(int device, void *stream); /* the driver's code */
/* Enqueues a function of the host, before which nothing that follows on the stream runs. */
void gpu_host(int device, void *stream, void (*function)(void *), void *with);
void gpu_capture(int device, void *stream, int mode);
/* Returns the code of ending the capture; a graph is launched `times` times, and destroyed. */
int gpu_capture_end(int device, void *stream, int times);
/* This thread's current context or device, as a number. */
long gpu_current(void);
/* Makes a device current for this thread, or (-1) nothing; a new context if `own`. */
void gpu_set_current(int device, int own);

/* ---- State that must be unchanged ------------------------------------------------------------*/

typedef struct gpu_state {
  standin_stats_t stats;
  long current, violations;
} gpu_state;
gpu_state gpu_now(void);
/* Whether nothing leaked since then, the current context is unchanged, and no rule was violated. */
int gpu_same(const gpu_state *before, const char *file, int line);
#define SAME(before) gpu_same(&(before), __FILE__, __LINE__)

/* ---- Tensors on a device --------------------------------------------------------------------*/

/* A float32 tensor of 2 x 3 with values 0 to 5 in memory from the driver. */
typedef struct gpu_tensor {
  DLManagedTensorVersioned managed;
  int64_t shape[2], strides[2];
  float *data;
} gpu_tensor;
void gpu_make(gpu_tensor *tensor, int device);
/* The same memory by columns: 0 2 4, 1 3 5. */
void gpu_turn(gpu_tensor *tensor);
/* Whether its memory holds these 6 values. */
int gpu_holds(const DLTensor *tensor, const float *values);

/* For a call that fails with this status because of the driver, or may: checks the message and that
 * no deleter ran. `code` is the driver's, 0 if it did not cause the failure, ANY. */
int gpu_failed(const char *file, int line, const char *call, int32_t got, int32_t want, int32_t code);
#define FAILS(status, code, call) \
  (t_before(), gpu_failed(__FILE__, __LINE__, #call, (call), (status), (code)))

/* ---- Rows -----------------------------------------------------------------------------------*/

/* What a row needs; without it the row is left out. */
enum { STANDIN = 1, TWO_DEVICES = 2, ON_CUDA = 4, ON_HIP = 8 };
typedef struct gpu_row {
  const char *id;
  const char *what;
  void (*run)(void);
  int needs;
} gpu_row;

/* Numbers that rows increment; here the sum over all rows that have run. */
extern long gpu_tally[5];

/* Runs a function in a separate process; returns what that prints. */
char *gpu_child(void (*run)(const void *), const void *with, int *status);
/* Runs a row in a separate process, which frees what the row leaves, and prints its failures. */
void gpu_run(const gpu_row *row);
/* Runs the rows of that id, or all; `list` prints their names. */
void gpu_run_all(const gpu_row *rows, size_t n, const char *id, int list);
/* Prints "N passed, N failed"; returns the exit status. */
int gpu_end(void);
/* A program of rows only: PROGRAM cuda|rocm [ROW]. */
int gpu_main(int argc, char **argv, const gpu_row *rows, size_t n);
#define GPU_MAIN(rows) \
  int main(int argc, char **argv) { return gpu_main(argc, argv, rows, sizeof rows / sizeof *rows); }

#endif
