/* Streams and their work, as queue.c, streams.c and kernels.c share them. */
#ifndef C_TESTS_STANDIN_QUEUE_H_
#define C_TESTS_STANDIN_QUEUE_H_

#include "core.h"
#include "program.h"

enum { COPY, FILL, KERNEL, RECORD, WAIT, ALLOC, FREE, HOST };
enum { STREAMS = 1024 };

/* A point in a stream's work, shared by the event, the step that reaches it and its waiters. */
typedef struct mark {
  int reached, refs;
} mark;

typedef struct op {
  struct op *next;
  int kind, value;
  uint64_t order;
  copy2d copy;
  mark *mark;
  block *uses[8]; /* must not be freed before */
  int used;
  program *program;
  int kernel; /* its number in the program */
  unsigned blocks;
  unsigned char argument[PROGRAM_ARGUMENT];
  void (*host)(void *);
  void *with;
} op;

typedef struct capture {
  int state, mode; /* 1 in progress, 2 invalidated */
  pthread_t thread;
  struct stream *origin;
  uint64_t context;
  op *first, **last;
  long steps;
} capture;

typedef struct stream {
  uint64_t handle;
  context *context;
  int live, used, legacy, nonblocking;
  pthread_t thread;
  op *first, **last;
  capture *capture;
  long captured, joined; /* index of its last captured step; and how far it is joined */
} stream;

typedef struct event {
  uint64_t handle;
  int device;
  uint64_t context;
  mark *mark;
  capture *capture;
  stream *recorded;
  long step;
} event;

extern stream streams[STREAMS]; /* those in use, and those with work left */
stream *stream_make(context *on, uint64_t handle, int legacy);
stream *stream_of(void *handle);

op *op_new(int kind);
void op_free(op *self);
void mark_drop(mark *self);
void use(op *self, const void *address); /* a block must not be freed before */
int enqueue(stream *on, op *work);       /* takes ownership, also when the work is rejected */
int kernel_run(stream *on, op *work);
int step(stream *target);                /* runs one step; 0: none may run */
void drift(void);                        /* runs some steps that no call waits for */
int stuck(void);
int stream_finish(stream *self);
stream *stream_to(const mark *self);     /* the stream that will reach a mark */
/* Work on the legacy stream would wait for blocking streams that capture. */
int legacy_forbidden(const stream *self);

#endif
