/* Captures, graphs, streams and events. */
#include "queue.h"

#include <string.h>

enum { EVENTS = 4096, CAPTURES = 16, GRAPHS = 64 };
typedef struct graph {
  uint64_t handle;
  op *first;
} graph;
static event events[EVENTS];
static capture captures[CAPTURES];
static graph graphs[GRAPHS];

/* ---- Capture --------------------------------------------------------------------------------*/

static int capture_break(capture *self, int code) {
  if (self->state == 1) {
    self->state = 2;
    ++stats.captures_broken;
  }
  return code;
}

/* This thread's capture mode: 0 captures of any thread, 1 its own, 2 none. */
static _Thread_local int careful;

int capture_exchange(int *mode) {
  int old = careful;
  if (*mode < 0 || *mode > 2) return E_VALUE;
  careful = *mode;
  *mode = old;
  return OK;
}

int capture_forbids(void) {
  int code = OK;
  for (int i = 0; i < CAPTURES && careful != 2; ++i) {
    capture *it = &captures[i];
    int own = pthread_equal(it->thread, pthread_self());
    if (it->state != 1 || it->mode == 2) continue;
    if (!own && (it->mode != 0 || careful != 0)) continue;
    code = capture_break(it, E_CAPTURE_UNSUPPORTED);
  }
  return code;
}

/* Work on the legacy stream would wait for blocking streams that capture. Querying its capture
 * status fails in the same way, but invalidates nothing. */
static int legacy_captures(const stream *self, int breaks) {
  int code = OK;
  if (!self->legacy) return OK;
  for (int i = 0; i < STREAMS; ++i) {
    stream *it = &streams[i];
    if (it->live && it->capture && it->context == self->context && !it->nonblocking) {
      code = E_CAPTURE_IMPLICIT;
      if (breaks) capture_break(it->capture, code);
    }
  }
  return code;
}

int legacy_forbidden(const stream *self) { return legacy_captures(self, 1); }

int capture_forbids_sync(const context *of) {
  int code = OK;
  for (int i = 0; i < CAPTURES; ++i) {
    if (captures[i].state == 1 && captures[i].context == of->handle) {
      code = capture_break(&captures[i], E_CAPTURE_UNSUPPORTED);
    }
  }
  return code;
}

/* A wait for a stream or a query of it is not permitted while it captures. */
static int capture_waits(const stream *self) {
  if (self->capture == NULL) return legacy_forbidden(self);
  if (self->capture->state == 2) return E_CAPTURE_INVALIDATED;
  return capture_break(self->capture, E_CAPTURE_UNSUPPORTED);
}

int capture_begin(void *handle, int mode) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  if (self->legacy) return E_CAPTURE_UNSUPPORTED;
  if (self->capture != NULL || mode < 0 || mode > 2) return self->capture ? 401 : E_VALUE;
  for (int i = 0; i < CAPTURES; ++i) {
    capture *it = &captures[i];
    if (it->state != 0) continue;
    memset(it, 0, sizeof *it);
    it->state = 1;
    it->mode = mode;
    it->thread = pthread_self();
    it->origin = self;
    it->context = self->context->handle;
    it->last = &it->first;
    self->capture = it;
    self->captured = self->joined = 0;
    return OK;
  }
  return E_NOMEM;
}

static void ops_free(op *list) {
  while (list != NULL) {
    op *next = list->next;
    op_free(list);
    list = next;
  }
}

/* Removes a capture from its streams; returns whether all of them were joined. */
static int capture_close(capture *self) {
  int joined = 1;
  for (int i = 0; i < STREAMS; ++i) {
    stream *it = &streams[i];
    if (!it->used || it->capture != self) continue;
    if (it != self->origin && it->joined < it->captured) joined = 0;
    it->capture = NULL;
  }
  for (int i = 0; i < EVENTS; ++i) {
    if (events[i].capture == self) events[i].capture = NULL;
  }
  return joined;
}

int capture_end(void *handle, void **out) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  capture *it = self->capture;
  if (it == NULL) return 401;
  if (it->origin != self) return capture_break(it, E_CAPTURE_UNMATCHED);
  int joined = capture_close(it), broken = it->state == 2;
  op *first = it->first;
  it->state = 0;
  *out = NULL;
  if (broken || !joined) {
    ops_free(first);
    return broken ? E_CAPTURE_INVALIDATED : E_CAPTURE_UNJOINED;
  }
  graph *made = NEW(graphs, GRAPH);
  if (made == NULL) return ops_free(first), E_NOMEM;
  made->first = first;
  ++stats.graphs;
  *out = handle_of(made);
  return OK;
}

int stream_capturing(void *handle, int *status) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  if (legacy_captures(self, 0) != OK) return E_CAPTURE_IMPLICIT;
  *status = self->capture == NULL ? 0 : self->capture->state;
  return OK;
}

/* ---- Streams --------------------------------------------------------------------------------*/

int stream_new(context *on, unsigned flags, void **out) {
  if (flags > 1) return E_VALUE;
  stream *self = stream_make(on, handle_new(STREAM), 0);
  if (self == NULL) return E_NOMEM;
  self->nonblocking = flags == 1;
  ++stats.streams;
  *out = (void *)(uintptr_t)self->handle;
  return OK;
}

int stream_destroy(void *handle) {
  stream *self = stream_of(handle);
  if (self == NULL || self->handle < 3) return E_HANDLE;
  if (self->capture != NULL) {
    capture_break(self->capture, 0);
    if (self->capture->origin == self) {
      capture *it = self->capture;
      capture_close(it);
      ops_free(it->first);
      it->state = 0;
    }
    self->capture = NULL;
  }
  self->live = 0;
  if (self->first == NULL) self->used = 0;
  --stats.streams;
  return OK;
}

int stream_sync(void *handle) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  int code = capture_waits(self);
  return code != OK ? code : stream_finish(self);
}

int stream_query(void *handle) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  int code = capture_waits(self);
  if (code != OK) return code;
  drift();
  int busy = self->first != NULL;
  if (busy) step(self);
  if (self->context->lost) return self->context->lost;
  return busy ? E_NOT_READY : OK;
}

int stream_context(void *handle, context **out) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  *out = self->context;
  return OK;
}

static int wait_captured(stream *self, event *it) {
  capture *theirs = it->capture;
  if (theirs != NULL && theirs->state == 2) return E_CAPTURE_INVALIDATED;
  if (self->capture != NULL && self->capture->state == 2) return E_CAPTURE_INVALIDATED;
  if (theirs == NULL) return capture_break(self->capture, E_CAPTURE_ISOLATION);
  if (self->legacy) return capture_break(theirs, E_CAPTURE_IMPLICIT);
  if (self->capture != NULL && self->capture != theirs) {
    capture_break(theirs, 0);
    return capture_break(self->capture, E_CAPTURE_MERGE);
  }
  if (self->capture == NULL) {
    self->joined = 0;
    self->capture = theirs;
  }
  self->captured = ++theirs->steps;
  if (it->recorded != NULL && it->recorded->joined < it->step) it->recorded->joined = it->step;
  return OK;
}

int stream_wait(void *handle, void *event_handle) {
  stream *self = stream_of(handle);
  event *it = FIND(events, event_handle);
  if (self == NULL || it == NULL) return E_HANDLE;
  if (it->capture != NULL || (self->capture != NULL && it->mark != NULL)) {
    return wait_captured(self, it);
  }
  if (it->mark == NULL) return legacy_forbidden(self);
  op *work = op_new(WAIT);
  work->mark = it->mark;
  ++it->mark->refs;
  return enqueue(self, work);
}

int graph_launch(void *handle, void *stream_handle) {
  stream *on = stream_of(stream_handle);
  graph *self = FIND(graphs, handle);
  if (on == NULL || self == NULL) return E_HANDLE;
  for (op *it = self->first; it != NULL; it = it->next) {
    op *again = op_new(it->kind);
    *again = *it;
    again->next = NULL;
    int code = enqueue(on, again);
    if (code != OK) return code;
  }
  return OK;
}

int graph_destroy(void *handle) {
  graph *self = FIND(graphs, handle);
  if (self == NULL) return E_VALUE;
  ops_free(self->first);
  self->handle = 0;
  --stats.graphs;
  return OK;
}

/* ---- Events ---------------------------------------------------------------------------------*/

int event_new(void **out) {
  event *self = NEW(events, EVENT);
  if (self == NULL) return E_NOMEM;
  self->device = current()->device;
  self->context = context_base(current());
  ++stats.events;
  *out = handle_of(self);
  return OK;
}

int event_destroy(void *handle) {
  event *self = FIND(events, handle);
  if (self == NULL) return E_HANDLE;
  mark_drop(self->mark);
  self->handle = 0;
  --stats.events;
  return OK;
}

int event_record(void *handle, void *stream_handle) {
  event *self = FIND(events, handle);
  stream *on = stream_of(stream_handle);
  if (self == NULL || on == NULL || self->context != context_base(on->context)) return E_HANDLE;
  int code = legacy_forbidden(on);
  if (code != OK) return code;
  if (on->capture != NULL) {
    if (on->capture->state == 2) return E_CAPTURE_INVALIDATED;
    mark_drop(self->mark);
    self->mark = NULL;
    self->capture = on->capture;
    self->recorded = on;
    self->step = on->captured;
    return OK;
  }
  mark *here = calloc(1, sizeof *here);
  op *work = op_new(RECORD);
  if (here == NULL) abort();
  here->refs = 2;
  work->mark = here;
  code = enqueue(on, work);
  if (code != OK) {
    free(here); /* the step has released its reference */
    return code;
  }
  mark_drop(self->mark);
  self->mark = here;
  self->capture = NULL;
  return OK;
}

static int event_captured(event *self) {
  if (self == NULL) return E_HANDLE;
  return self->capture == NULL ? OK : capture_break(self->capture, E_CAPTURED_EVENT);
}

static int device_lost(int device) {
  context *here = current();
  return here != NULL && here->device == device ? here->lost : OK;
}

int event_query(void *handle) {
  event *self = FIND(events, handle);
  int code = event_captured(self);
  if (code != OK) return code;
  drift();
  int busy = self->mark != NULL && !self->mark->reached;
  if (busy) step(stream_to(self->mark));
  if (device_lost(self->device)) return device_lost(self->device);
  return busy ? E_NOT_READY : OK;
}

int event_sync(void *handle) {
  event *self = FIND(events, handle);
  int code = event_captured(self);
  if (code != OK) return code;
  drift();
  while (self->mark != NULL && !self->mark->reached) {
    if (!step(stream_to(self->mark)) && stuck()) return 999;
  }
  return device_lost(self->device);
}
