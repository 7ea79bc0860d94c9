/* Every copy is ordered after earlier work on both sides' streams: order cuda|rocm [FUNCTION]
 *
 * One matrix, generated: function x memory of the source x memory of the destination x stream of
 * each x whether the call waits x hazard. In a cell, when the function is called, the source's
 * stream has yet to write it (read after write), or the destination's stream has yet to read it
 * (write after read). Enqueued work runs only when something waits for it, so a missing order shows
 * as old bytes. A cell is ordered, or rejected where the rule requires that.
 *
 * Each cell runs twice more: a stream that is not an argument of the call writes the source, and
 * was recorded for it (dlrs_ready_record); the same for the destination, which must keep the call's
 * bytes. The tensors are views of the recorded one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#pragma GCC diagnostic ignored "-Wunused-parameter" /* of a backend's functions */
#include "gpu.h"

enum { ROWS = 16, COLUMNS = 32, NBYTES = ROWS * COLUMNS, WIDE = 2 * NBYTES };
enum { OLD = 0x11, NEW = 0x22, NOTHING = 0x33 };

/* ---- Backends of the caller, whose streams are as lazy as a stand-in's ------------------------*/

typedef struct work {
  struct work *next;
  struct point *reach, *wait; /* else a copy */
  dlrs_byte_plan plan;
  int64_t shape[4], src_strides[4], dst_strides[4];
} work;
typedef struct queue {
  work *first, **last;
} queue;
/* A queue's position when an event was recorded: waits use it, even if the event is re-recorded. */
typedef struct point {
  queue *on;
  int reached;
} point;
typedef struct mark {
  point *at;
} mark;
enum { MARKS = 64, POINTS = 512 };

static void copy_now(const dlrs_byte_plan *p, int dim, unsigned char *dst, const unsigned char *src) {
  if (dim == p->ndim) {
    memcpy(dst, src, p->item_nbytes);
    return;
  }
  for (int64_t i = 0; i < p->shape[dim]; ++i) {
    copy_now(p, dim + 1, dst + i * p->dst_strides[dim], src + i * p->src_strides[dim]);
  }
}

static work *give(queue *on) {
  work *it = (work *)calloc(1, sizeof *it);
  if (on->last == NULL) on->last = &on->first;
  *on->last = it;
  on->last = &it->next;
  return it;
}

/* Runs a queue's work, up to a mark or all of it. */
static void carry_out(queue *on, const point *until) {
  while (on->first != NULL && (until == NULL || !until->reached)) {
    work *it = on->first;
    if (it->wait != NULL) carry_out(it->wait->on, it->wait);
    else if (it->reach != NULL) it->reach->reached = 1;
    else copy_now(&it->plan, 0, seen(it->plan.dst), seen(it->plan.src));
    on->first = it->next;
    if (on->first == NULL) on->last = &on->first;
    free(it);
  }
}

static queue defaults[2], named[2], maker;
static mark marks[MARKS];
static point points[POINTS];
static int marks_made, points_made;

static queue *queue_of(void *context, void *stream) {
  return stream ? (queue *)stream : &defaults[(int)(intptr_t)context];
}

static int t_alloc(void *context, DLDevice device, uint64_t nbytes, uint64_t align, void *stream,
                   void **out, dlrs_fault *fault) {
  *out = aligned_alloc(align < 64 ? 64 : align, (nbytes + 255) / 256 * 256);
  return *out ? 0 : DLRS_NOMEM;
}

static int t_free(void *context, DLDevice device, void *data, uint64_t nbytes, uint64_t align,
                  void *stream, dlrs_fault *fault) {
  free(data);
  return 0;
}

static int later(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream,
                 dlrs_fault *fault) {
  if (plan->ndim > 4) return DLRS_UNSUPPORTED;
  work *it = give(queue_of(context, stream));
  size_t nbytes = (size_t)plan->ndim * sizeof(int64_t);
  it->plan = *plan;
  if (nbytes > 0) {
    memcpy(it->shape, plan->shape, nbytes);
    memcpy(it->src_strides, plan->src_strides, nbytes);
    memcpy(it->dst_strides, plan->dst_strides, nbytes);
  }
  it->plan.shape = it->shape;
  it->plan.src_strides = it->src_strides;
  it->plan.dst_strides = it->dst_strides;
  return 0;
}

/* Only contiguous copies from and to the host. */
static int simple(const dlrs_byte_plan *plan) {
  int host = plan->src_device.device_type == kDLCPU || plan->dst_device.device_type == kDLCPU;
  return plan->ndim == 0 && host;
}

static int later_simple(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream,
                        dlrs_fault *fault) {
  return simple(plan) ? later(context, device, plan, stream, fault) : DLRS_UNSUPPORTED;
}

static int at_once(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream,
                   dlrs_fault *fault) {
  if (!simple(plan)) return DLRS_UNSUPPORTED;
  copy_now(plan, 0, seen(plan->dst), seen(plan->src));
  return 0;
}

static int t_sync(void *context, DLDevice device, void *stream, dlrs_fault *fault) {
  carry_out(queue_of(context, stream), NULL);
  return 0;
}

static int t_event(void *context, DLDevice device, void **out, dlrs_fault *fault) {
  *out = &marks[marks_made++ % MARKS];
  return 0;
}

static int t_event_end(void *context, DLDevice device, void *event, dlrs_fault *fault) {
  return 0;
}

static int t_record(void *context, DLDevice device, void *event, void *stream, dlrs_fault *fault) {
  point *it = &points[points_made++ % POINTS];
  it->on = queue_of(context, stream);
  it->reached = 0;
  give(it->on)->reach = ((mark *)event)->at = it;
  return 0;
}

static int t_event_sync(void *context, DLDevice device, void *event, dlrs_fault *fault) {
  carry_out(((mark *)event)->at->on, ((mark *)event)->at);
  return 0;
}

static int t_event_query(void *context, DLDevice device, void *event, int *out, dlrs_fault *fault) {
  *out = ((mark *)event)->at->reached;
  return 0;
}

static int t_wait(void *context, DLDevice device, void *event, void *stream, dlrs_fault *fault) {
  give(queue_of(context, stream))->wait = ((mark *)event)->at;
  return 0;
}

/* READER copies any operands, and has events; SIMPLE needs staging on the host; AT_ONCE has no
 * streams. */
static dlrs_backend tables[3];

/* ---- Kinds of memory, and their streams -------------------------------------------------------*/

enum { ON_CPU, PINNED, MANAGED_0, MANAGED_1, DEVICE_0, DEVICE_1, READER, SIMPLE, AT_ONCE, KINDS };
static const int places[] = {PLAIN_HOST, PINNED_HOST, MANAGED_HOST, MANAGED_HOST_1, 0, 1, PLAIN_HOST, PLAIN_HOST, PLAIN_HOST};
static const char *const kind_names[] = {"cpu",      "pinned", "managed", "managed:1", "device",
                                         "device:1", "reader", "simple",  "at once"};
enum { DEFAULT, LEGACY, PER_THREAD, NAMED, BLOCKING, CHOICES };
static const char *const choice_names[] = {"NULL", "1", "2", "named", "blocking"};

typedef struct memory {
  DLDevice on;
  int device;                     /* of the driver */
  unsigned char *first, *second;  /* as a source, and as a destination */
  DLManagedTensorVersioned *own[2]; /* both as own tensors, while an event is recorded */
} memory;
static memory kinds[KINDS];
static void *streams[2][CHOICES];
static void *makers[2];
static unsigned char *news, *olds, *spy, host_olds[WIDE], host_news[WIDE], host_spy[WIDE];

static int table_of(int kind) { return kind >= READER ? kind - READER : -1; }
static int is_host(int kind) { return kind < DEVICE_0 && kinds[kind].on.device_type != (DLDeviceType)G.type; }

static void set_up(void) {
  static const int codes[] = {kDLExtDev, kDLHexagon, kDLMAIA};
  for (int i = 0; i < 3; ++i) {
    tables[i] = (dlrs_backend){.struct_size = sizeof tables[i], .context = (void *)(intptr_t)i, .alloc = t_alloc, .free = t_free,
                               .copy = i == 0 ? later : i == 1 ? later_simple : at_once, .stream_sync = i < 2 ? t_sync : NULL};
    if (i == 0) {
      tables[0].event_create = t_event;
      tables[0].event_destroy = t_event_end;
      tables[0].event_record = t_record;
      tables[0].event_wait = t_wait;
      tables[0].event_sync = t_event_sync;
      tables[0].event_query = t_event_query;
    }
    WORKS(dlrs_backend_set(codes[i], &tables[i], NULL, ERR));
  }
  gpu_set_current(0, 0); /* 1 and 2 are streams of the current device for host memory */
  for (int kind = 0; kind < KINDS; ++kind) {
    memory *it = &kinds[kind];
    it->device = gpu_device_of(places[kind]);
    it->on = kind >= READER ? t_device(codes[table_of(kind)], 0) : gpu_place(places[kind]);
    it->first = (unsigned char *)gpu_room(places[kind], WIDE);
    it->second = (unsigned char *)gpu_room(places[kind], WIDE);
  }
  for (int device = 0; device < 2; ++device) {
    streams[device][LEGACY] = (void *)1;
    streams[device][PER_THREAD] = (void *)2;
    streams[device][NAMED] = gpu_stream(device, 1);
    streams[device][BLOCKING] = gpu_stream(device, 0);
    makers[device] = gpu_stream(device, 1);
  }
  news = (unsigned char *)gpu_pinned(WIDE);
  spy = (unsigned char *)gpu_pinned(WIDE);
  olds = (unsigned char *)gpu_pinned(WIDE);
  memset(news, NEW, WIDE);
  memset(olds, OLD, WIDE);
  memset(host_olds, OLD, WIDE);
  memset(host_news, NEW, WIDE);
}

/* A side's stream: its owner and handle. For CPU memory the stream is the other side's. */
typedef struct place {
  int kind, choice;
  int owner;  /* the kind that the stream belongs to, -1: none */
  int device; /* of the driver */
  void *stream;
} place;

static place place_of(int kind, int choice, int other) {
  place it = {kind, choice, kind, 0, NULL};
  if (choice == DEFAULT && (kind == ON_CPU || kind == PINNED)) it.owner = -1;
  else if (kind == ON_CPU) it.owner = other == ON_CPU ? -1 : other;
  if (choice != DEFAULT && it.owner < 0) it.stream = streams[0][NAMED];
  if (it.owner < 0) return it;
  it.device = kinds[it.owner].device;
  if (table_of(it.owner) >= 0) {
    if (choice != DEFAULT) it.stream = &named[table_of(it.owner) % 2];
    if (it.owner == AT_ONCE) it.owner = -1;
    return it;
  }
  it.stream = streams[it.device][choice];
  int exact = kinds[it.owner].on.device_type == (DLDeviceType)G.type;
  if (!exact && (choice == LEGACY || choice == PER_THREAD)) it.device = 0;
  return it;
}

/* Whether a side has this choice. */
static int offered(int kind, int choice) {
  if (choice == LEGACY && G.hip == 5 && table_of(kind) < 0) return 0; /* rejects it */
  if (table_of(kind) >= 0 || kind == ON_CPU) return choice == DEFAULT || choice == NAMED;
  return 1;
}

static void enqueue(const place *at, unsigned char *dst, const unsigned char *src, size_t nbytes) {
  if (table_of(at->owner) < 0) {
    gpu_copy(at->device, at->stream, dst, src, nbytes);
    return;
  }
  dlrs_byte_plan plan;
  memset(&plan, 0, sizeof plan);
  plan.src = src;
  plan.dst = dst;
  plan.item_nbytes = nbytes;
  later(tables[table_of(at->owner)].context, kinds[at->owner].on, &plan, at->stream, NULL);
}

/* The stream, not an argument of the call, that writes the memory of a kind. */
static place maker_of(int kind) {
  place it = {kind, NAMED, kind, kinds[kind].device, NULL};
  it.stream = table_of(kind) >= 0 ? (void *)&maker : makers[it.device];
  return it;
}

/* Both memories of a kind as tensors of this library. */
static void own(memory *it) {
  static int64_t all_of[1] = {WIDE};
  for (int i = 0; i < 2; ++i) {
    DLTensor bare = t_describe(i ? it->second : it->first, t_dtype(kDLUInt, 8, 1), 1, all_of, NULL);
    bare.device = it->on;
    WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &it->own[i], ERR));
  }
}

/* Enqueues the write of NEW to the source, or the read of the destination. */
static void pend_write(const place *at, unsigned char *dst, size_t nbytes) {
  enqueue(at, dst, table_of(at->owner) < 0 ? news : host_news, nbytes);
}

static void pend_read(const place *at, const unsigned char *src, size_t nbytes) {
  enqueue(at, table_of(at->owner) < 0 ? spy : host_spy, src, nbytes);
}

static void wait_for(const place *at) {
  if (at->owner < 0) return;
  if (table_of(at->owner) < 0) EQUAL(gpu_sync(at->device, at->stream), 0);
  else carry_out(queue_of(tables[table_of(at->owner)].context, at->stream), NULL);
}

static void wait_for_all(void) {
  G.ctl(STANDIN_RUN, -1, 0, NULL);
  for (int i = 0; i < 2; ++i) {
    carry_out(&defaults[i], NULL);
    carry_out(&named[i], NULL);
  }
  carry_out(&maker, NULL);
}

static int all(const unsigned char *bytes, size_t nbytes, unsigned step, int value) {
  for (size_t i = 0; i < nbytes; i += step) {
    if (bytes[i] != value) return 0;
  }
  return 1;
}

/* ---- Functions --------------------------------------------------------------------------------*/

typedef struct call {
  memory *src, *dst;
  dlrs_copy_options options;
  DLManagedTensorVersioned *out; /* what a function created */
  const void *result;            /* where the bytes must arrive */
  unsigned step;                 /* bytes of an element */
} call;

enum { ANYWHERE = 1, HOSTS = 2, MAKES = 4, FROM_CPU = 8, STAYS = 32, TAKES = 64 };

static int64_t shape[2] = {ROWS, COLUMNS}, dense[2] = {COLUMNS, 1}, across[2] = {1, ROWS};

/* Tensors of one cell: foreign structs, or views of the recorded tensor. */
enum { PAIRS = 65, GIVEN = 2 * PAIRS };
static DLManagedTensorVersioned given[GIVEN], *views[GIVEN];
static int givens;

static DLManagedTensorVersioned *tensor_of(const memory *of, void *data, int64_t *extents, int64_t *strides) {
  int i = givens++ % GIVEN;
  unsigned char *at = (unsigned char *)data;
  for (int side = 0; side < 2; ++side) {
    unsigned char *first = side ? of->second : of->first;
    if (of->own[side] == NULL || at < first || at >= first + WIDE) continue;
    WORKS(dlrs_view_as_strided(of->own[side], extents, strides, 2, at - first, &views[i], ERR));
    return views[i];
  }
  DLTensor bare = t_describe(data, U8, 2, extents, strides);
  bare.device = of->on;
  given[i] = t_managed(bare, 0);
  return &given[i];
}

static void drop_views(void) {
  for (int i = 0; i < GIVEN; ++i) {
    dlrs_release(views[i]);
    views[i] = NULL;
  }
  givens = 0;
}

static DLManagedTensorVersioned *source(call *c, int64_t *strides) { return tensor_of(c->src, c->src->first, shape, strides); }
static DLManagedTensorVersioned *target(call *c, int64_t *strides) { return tensor_of(c->dst, c->dst->second, shape, strides); }

static int32_t f_copy(call *c) { return dlrs_copy(source(c, dense), target(c, dense), &c->options, ERR); }
static int32_t f_copy_strided(call *c) { return dlrs_copy(source(c, across), target(c, dense), &c->options, ERR); }

static int32_t f_copy_desc(call *c) {
  return dlrs_copy_desc(&source(c, dense)->dl_tensor, 0, &target(c, across)->dl_tensor, 0, &c->options, ERR);
}

/* More pairs than the driver copies by one call: blocks of 16 bytes, whose halves are a pair each, or, of
 * each third one, every second byte; one half is two pairs. */
static int32_t f_batch(call *c) {
  enum { BLOCK = 16 };
  static int64_t half[2] = {1, BLOCK / 2}, quarter[2] = {1, BLOCK / 4}, apart[2] = {BLOCK, 2};
  DLManagedTensorVersioned *dst[PAIRS];
  const DLManagedTensorVersioned *src[PAIRS];
  for (int i = 0; i < PAIRS; ++i) {
    int last = i >= PAIRS - 2, block = last ? NBYTES / BLOCK - 1 : i / 2, strided = block % 3 == 2;
    int at = block * BLOCK + (last ? BLOCK / 2 + (i - PAIRS + 2) * BLOCK / 4 : i % 2 * (strided ? 1 : BLOCK / 2));
    src[i] = tensor_of(c->src, c->src->first + at, last ? quarter : half, strided ? apart : dense);
    dst[i] = tensor_of(c->dst, c->dst->second + at, last ? quarter : half, strided ? apart : dense);
  }
  return dlrs_copy_batch(PAIRS, src, dst, &c->options, NULL, ERR);
}

static int32_t f_cast_same(call *c) { return dlrs_cast(source(c, across), target(c, dense), &c->options, ERR); }

static int32_t f_cast(call *c) {
  DLManagedTensorVersioned *dst = target(c, dense);
  dst->dl_tensor.dtype = t_dtype(kDLInt, 16, 1);
  c->step = 2;
  return dlrs_cast(source(c, dense), dst, &c->options, ERR);
}

static int32_t f_fill(call *c) {
  static const unsigned char value = NEW;
  return dlrs_fill(target(c, dense), &value, U8, &c->options, ERR);
}

static int32_t f_fill_converted(call *c) {
  static const double value = NEW;
  return dlrs_fill(target(c, dense), &value, t_dtype(kDLFloat, 64, 1), &c->options, ERR);
}

static int32_t f_clone(call *c) { return dlrs_clone(source(c, dense), c->dst->on, &c->options, &c->out, ERR); }
static int32_t f_to_device(call *c) { return dlrs_to_device(source(c, across), c->dst->on, 1, &c->options, &c->out, ERR); }
static int32_t f_contiguous(call *c) { return dlrs_contiguous(source(c, across), 'C', &c->options, &c->out, ERR); }

static int32_t f_import(call *c) {
  DLManagedTensorVersioned *taken = source(c, dense), *src = taken;
  dlrs_import_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.copy = 1;
  options.copy_options = &c->options;
  int32_t status = dlrs_import_take(&taken, &options, &c->out, ERR);
  for (int i = 0; status == DLRS_OK && i < GIVEN; ++i) {
    if (views[i] == src) views[i] = NULL;
  }
  return status;
}

static const struct {
  const char *name;
  int32_t (*run)(call *);
  int like;
} functions[] = {
    {"copy", f_copy, ANYWHERE},
    {"copy, strided", f_copy_strided, ANYWHERE},
    {"copy_desc", f_copy_desc, ANYWHERE},
    {"copy_batch", f_batch, ANYWHERE},
    {"cast, same dtype", f_cast_same, ANYWHERE},
    {"cast", f_cast, HOSTS},
    {"fill", f_fill, HOSTS | FROM_CPU},
    {"fill, converted", f_fill_converted, HOSTS | FROM_CPU},
    {"clone", f_clone, ANYWHERE | MAKES},
    {"to_device", f_to_device, ANYWHERE | MAKES},
    {"contiguous", f_contiguous, ANYWHERE | MAKES | STAYS},
    {"import_take", f_import, ANYWHERE | MAKES | TAKES},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };
static int function; /* whose matrix runs */

/* ---- The matrix -------------------------------------------------------------------------------*/

enum { READ_AFTER_WRITE, WRITE_AFTER_READ, READ_RECORDED, WRITE_RECORDED, BOTH_RECORDED };
static const char *const hazard_names[] = {"read after write", "write after read", "read of what is recorded",
                                           "write after what is recorded", "both are recorded"};
static long cells, ordered, refused, wrong;

/* Whether the rule rejects a cell: streams for memory without streams. */
static int must_refuse(const place *src, const place *dst) {
  for (int i = 0; i < 2; ++i) {
    const place *it = i ? dst : src, *other = i ? src : dst;
    if (it->choice == DEFAULT) continue;
    if (it->kind == ON_CPU && (other->kind == ON_CPU || other->kind == AT_ONCE)) return 1;
    if (it->kind == AT_ONCE) return 1;
  }
  return 0;
}

static void cell(const place *src, const place *dst, int async, int hazard) {
  memory *from = &kinds[src->kind], *to = &kinds[dst->kind];
  call c;
  memset(&c, 0, sizeof c);
  c.src = from;
  c.dst = to;
  c.step = 1;
  c.options.struct_size = sizeof c.options;
  c.options.flags = async ? DLRS_COPY_ASYNC : 0;
  c.options.src_stream = src->stream;
  c.options.dst_stream = dst->stream;
  int recorded = hazard >= READ_RECORDED, both = hazard == BOTH_RECORDED;
  int reads = hazard == READ_AFTER_WRITE || hazard == READ_RECORDED || both;
  memset(seen(from->first), reads ? OLD : NEW, WIDE);
  memset(seen(to->second), reads || hazard == WRITE_AFTER_READ ? OLD : NOTHING, WIDE);
  memset(spy, NOTHING, WIDE);
  memset(host_spy, NOTHING, WIDE);
  if (recorded) {
    for (int side = both ? 0 : !reads; side < 1 + (both || !reads); ++side) {
      place by = maker_of(side ? dst->kind : src->kind);
      memory *it = side ? to : from;
      own(it);
      enqueue(&by, side ? to->second : from->first,
              table_of(by.owner) < 0 ? (side ? olds : news) : (side ? host_olds : host_news), NBYTES);
      WORKS(dlrs_ready_record(it->own[side], by.stream, ERR));
    }
  } else if (reads) {
    pend_write(src, from->first, NBYTES);
  } else {
    pend_read(dst, to->second, NBYTES);
  }
  int32_t status = functions[function].run(&c);
  ++cells;
  const char *fault = NULL;
  if (status != DLRS_OK) {
    ++refused;
    if (!must_refuse(src, dst)) fault = "is refused";
  } else {
    if (async && (hazard == WRITE_RECORDED || both)) WORKS(dlrs_ready_sync(to->own[1], ERR)); /* recorded again */
    else if (async) wait_for(dst->owner < 0 ? src : dst);
    const unsigned char *result = seen(c.out ? c.out->dl_tensor.data : to->second);
    if (!all(result, NBYTES * c.step, c.step, NEW)) fault = "has read too early";
  }
  wait_for_all();
  const unsigned char *old = table_of(dst->owner) < 0 ? spy : host_spy;
  if (status == DLRS_OK && hazard == WRITE_AFTER_READ && !all(old, NBYTES, 1, OLD)) {
    fault = "has written too early";
  }
  if (status == DLRS_OK && (hazard == WRITE_RECORDED || both) && !all(seen(to->second), NBYTES * c.step, c.step, NEW)) {
    fault = "has written before what was recorded";
  }
  if (c.out != NULL) dlrs_release(c.out);
  drop_views();
  for (int i = 0; i < 2; ++i) {
    dlrs_release(from->own[i]);
    if (to != from) dlrs_release(to->own[i]);
    from->own[i] = to->own[i] = NULL;
  }
  if (status == DLRS_OK && fault == NULL) ++ordered;
  if (fault != NULL && ++wrong <= 20) {
    static char said[400];
    snprintf(said, sizeof said, "%s: %s on %s -> %s on %s, %s, %s: %s%s%s", functions[function].name,
             kind_names[src->kind], choice_names[src->choice], kind_names[dst->kind],
             choice_names[dst->choice], async ? "enqueued" : "waits", hazard_names[hazard], fault,
             status ? ": " : "", status ? t_error.message : "");
    t_check(0, __FILE__, __LINE__, said);
  }
}

/* Whether events can be recorded for memory of a kind. */
static int records(int kind) { return kind != ON_CPU && (table_of(kind) < 0 || kind == READER); }

static int applies(int src, int dst) {
  int like = functions[function].like;
  if (like & HOSTS && !(is_host(src) && is_host(dst))) return 0;
  if (like & FROM_CPU && src != ON_CPU) return 0;
  if (like & MAKES && dst == MANAGED_1 && G.managed) return 0; /* the device is not known */
  if (like & (STAYS | TAKES) && src == MANAGED_1) return 0;
  if (like & STAYS && src != dst) return 0;
  if (like & TAKES && dst != (is_host(src) ? ON_CPU : src)) return 0;
  return 1;
}

static void pairs(int src, int dst) {
  int like = functions[function].like, bare = functions[function].run == f_copy_desc;
  for (int from = 0; from < CHOICES; ++from) {
    for (int to = 0; to < CHOICES; ++to) {
      if (!offered(src, from) || !offered(dst, to)) continue;
      place first = place_of(src, from, dst), second = place_of(dst, to, src);
      for (int async = 0; async < 2; ++async) {
        /* A fill's source belongs to the call; a new tensor has no earlier users. */
        int constant = like & FROM_CPU;
        if (first.owner >= 0 && !constant) cell(&first, &second, async, READ_AFTER_WRITE);
        if (second.owner >= 0 && !(like & MAKES)) cell(&first, &second, async, WRITE_AFTER_READ);
        if (bare) continue; /* the owner of the memory is unknown */
        if (records(src) && !constant) cell(&first, &second, async, READ_RECORDED);
        if (records(dst) && !(like & MAKES)) cell(&first, &second, async, WRITE_RECORDED);
        /* By one event each: not of the same memory. */
        if (function == 0 && src != dst && records(src) && records(dst)) cell(&first, &second, async, BOTH_RECORDED);
      }
    }
  }
}

static void matrix(void) {
  set_up();
  for (int src = 0; src < KINDS; ++src) {
    for (int dst = 0; dst < KINDS; ++dst) {
      if (applies(src, dst)) pairs(src, dst);
    }
  }
  EQUAL(wrong, 0);
  gpu_tally[0] = cells;
  gpu_tally[1] = ordered;
  gpu_tally[2] = refused;
  gpu_tally[3] = wrong;
}

/* ---- Cases outside of the matrix --------------------------------------------------------------*/

/* A graph cannot wait for work outside the capture, nor the host or legacy stream for a graph. */
static void captured(void) {
  set_up();
  memory *it = &kinds[DEVICE_0], *managed = &kinds[MANAGED_0];
  DLManagedTensorVersioned *src = tensor_of(it, it->first, shape, dense), *out = NULL;
  DLManagedTensorVersioned *dst = tensor_of(it, it->second, shape, dense);
  DLManagedTensorVersioned *moved = tensor_of(managed, managed->first, shape, dense);
  void *stream = streams[0][NAMED], *blocking = streams[0][BLOCKING], *other = gpu_stream(0, 1);
  dlrs_copy_options to = gpu_options(NULL, stream, DLRS_COPY_ASYNC), from = gpu_options(stream, NULL, DLRS_COPY_ASYNC);
  dlrs_copy_options waits = gpu_options(NULL, stream, 0), beside = gpu_options(NULL, other, DLRS_COPY_ASYNC);
  WORKS(dlrs_copy(src, dst, &to, ERR)); /* all resources exist */
  EQUAL(gpu_sync(0, stream), 0);
  memset(seen(it->first), NEW, WIDE);
  memset(seen(it->second), OLD, WIDE);
  gpu_capture(0, stream, 0);
  WORKS(dlrs_copy(src, dst, &to, ERR));
  FAILS(DLRS_CAPTURING, ANY, dlrs_copy(src, dst, &from, ERR));
  FAILS(DLRS_CAPTURING, ANY, dlrs_copy(src, dst, &waits, ERR));
  WORKS(dlrs_clone(moved, t_device(kDLCPU, 0), NULL, &out, ERR));
  dlrs_release(out);
  CHECK(all(seen(it->second), NBYTES, 1, OLD));
  EQUAL(gpu_now().stats.captures_broken, 0);
  EQUAL(gpu_capture_end(0, stream, 1), 0);
  CHECK(all(seen(it->second), NBYTES, 1, NEW));
  gpu_capture(0, blocking, 0); /* the legacy stream is not usable meanwhile */
  FAILS(DLRS_CAPTURING, ANY, dlrs_copy(src, dst, &beside, ERR));
  EQUAL(gpu_now().stats.captures_broken, 0);
  EQUAL(gpu_capture_end(0, blocking, 0), 0);
}

/* The driver calls of a contiguous copy while the primary context of device 0 is current. */
static void cost(void) {
  static const struct {
    int src, dst, from, to, async;
    int cuda, rocm; /* calls; fewer on ROCm 5, which does not report a stream's device */
  } rows[] = {
      {DEVICE_0, DEVICE_0, DEFAULT, DEFAULT, 1, 4, 4},
      {DEVICE_0, DEVICE_0, NAMED, NAMED, 1, 5, 5},
      {DEVICE_0, DEVICE_0, DEFAULT, NAMED, 1, 11, 11},
      {DEVICE_0, DEVICE_0, NAMED, DEFAULT, 1, 11, 11},
      {DEVICE_0, DEVICE_0, DEFAULT, PER_THREAD, 1, 4, 10},
      {DEVICE_0, DEVICE_0, NAMED, BLOCKING, 1, 11, 11},
      {DEVICE_0, DEVICE_0, NAMED, NAMED, 0, 12, 12},
      {DEVICE_0, DEVICE_0, DEFAULT, NAMED, 0, 17, 17},
      {DEVICE_0, PINNED, NAMED, DEFAULT, 1, 4, 4},
      {DEVICE_0, PINNED, NAMED, NAMED, 1, 4, 4},
      {DEVICE_0, PINNED, DEFAULT, NAMED, 1, 11, 11},
      {PINNED, DEVICE_0, DEFAULT, NAMED, 1, 4, 4},
      {ON_CPU, DEVICE_0, DEFAULT, NAMED, 1, 4, 4},
      {DEVICE_0, ON_CPU, DEFAULT, DEFAULT, 0, 9, 9},
      {PINNED, ON_CPU, DEFAULT, DEFAULT, 0, 0, 0},
      {PINNED, ON_CPU, NAMED, DEFAULT, 0, 6, 6},
      {MANAGED_0, ON_CPU, DEFAULT, DEFAULT, 0, 6, 9},
      {MANAGED_0, ON_CPU, NAMED, DEFAULT, 0, 6, 11},
  };
  set_up();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    memory *from = &kinds[rows[i].src], *to = &kinds[rows[i].dst];
    place first = place_of(rows[i].src, rows[i].from, rows[i].dst);
    place second = place_of(rows[i].dst, rows[i].to, rows[i].src);
    DLManagedTensorVersioned *src = tensor_of(from, from->first, shape, dense);
    DLManagedTensorVersioned *dst = tensor_of(to, to->second, shape, dense);
    dlrs_copy_options options = gpu_options(first.stream, second.stream, rows[i].async ? DLRS_COPY_ASYNC : 0);
    WORKS(dlrs_copy(src, dst, &options, ERR));
    long before = gpu_now().stats.calls;
    WORKS(dlrs_copy(src, dst, &options, ERR));
    long calls = gpu_now().stats.calls - before;
    wait_for_all();
    int want = G.hip ? rows[i].rocm : rows[i].cuda;
    /* There, the device of a named stream for pinned memory is found by an event. */
    int found = (rows[i].dst == PINNED && rows[i].to == NAMED) || (rows[i].src == PINNED && rows[i].from == NAMED);
    if (G.hip == 5) want = calls < want + 2 * found ? (int)calls : want + 2 * found;
    if (calls != want) {
      printf("%s on %s -> %s on %s, %s\n", kind_names[rows[i].src], choice_names[rows[i].from],
             kind_names[rows[i].dst], choice_names[rows[i].to], rows[i].async ? "enqueued" : "waits");
    }
    EQUAL(calls, want);
  }
}

static const gpu_row others[] = {
    {"captured", "order next to a capture", captured, STANDIN},
    {"cost", "calls of the driver", cost, STANDIN},
};

int main(int argc, char **argv) {
  const char *id = argc > 2 ? argv[2] : NULL;
  gpu_begin(argc, argv);
  for (function = 0; function < FUNCTIONS; ++function) {
    gpu_run_all(&(gpu_row){functions[function].name, "order", matrix, STANDIN}, 1, id, 0);
  }
  printf("%ld points of the matrix: %ld ordered, %ld refused as the rule says, %ld wrong\n", gpu_tally[0], gpu_tally[1],
         gpu_tally[2], gpu_tally[3]);
  gpu_run_all(others, sizeof others / sizeof *others, id, 0);
  return gpu_end();
}
