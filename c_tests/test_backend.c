/* Backends set from C: which one is called, which copies are staged on the host, and what happens
 * when something goes wrong at any point of a call: an allocation of the host fails, once or from
 * then on; a function of the backend fails, returns a number that is no status, reports success and
 * gives nothing, or gives memory that is not aligned. A call that fails has taken, written and
 * leaked nothing and called no deleter, and succeeds afterwards.
 *
 * The devices here are stand-ins over host memory: "ext_dev" has addresses that must not be
 * dereferenced, "opencl" has handles. Copies are compared with the same copies of host tensors. */
#include "harness.h"
#include "scattered.h"

#define SHIFT ((uintptr_t)1 << 44) /* a device's address is this far below its memory */
#define EXT t_device(kDLExtDev, 0)
#define OPENCL t_device(kDLOpenCL, 0)

enum { DENSE, ROWS, STRIDED }; /* what the stand-in supports */

enum { FAILS, NO_STATUS, NOTHING, MISALIGNED, NO_MEMORY, NO_MEMORY_ANY_MORE, WAYS };

typedef struct Object { /* behind a handle */
  unsigned char *bytes;
} Object;

static struct {
  int able;       /* DENSE, ROWS or STRIDED */
  int way;        /* how a call is wrong */
  int fail_at;    /* which one, counted from 1; 0: none */
  int fired;      /* it was */
  int32_t status; /* of one that fails */
  int done;       /* what new streams and events are */
  int calls, copies, syncs, live, events;
  void *stream; /* of the last copy */
  int count;
} fake;

static int wrong(int way) {
  if (fake.way != way || fake.calls != fake.fail_at) return 0;
  fake.fired = 1;
  return 1;
}

static int32_t enter(dlrs_fault *fault) {
  CHECK(fault != NULL && fault->driver_code == 0 && fault->detail == NULL);
  ++fake.calls;
  if (!wrong(FAILS) && !wrong(NO_STATUS)) return DLRS_OK;
  fault->driver_code = 77;
  fault->detail = "the stand-in fails as told";
  return fake.way == FAILS ? fake.status : fake.fail_at % 2 ? 12345 : -1;
}

static int32_t fake_count(void *context, int32_t type, int32_t *out, dlrs_fault *fault) {
  int32_t status = enter(fault);
  CHECK(context == &fake && (type == kDLExtDev || type == kDLOpenCL));
  if (status == DLRS_OK) *out = fake.count;
  return status;
}

static int32_t fake_alloc(void *context, DLDevice device, uint64_t nbytes, uint64_t align, void *stream,
                          void **out, dlrs_fault *fault) {
  int32_t status = enter(fault);
  char *memory;
  (void)context, (void)stream;
  if (status != DLRS_OK || wrong(NOTHING)) return status;
  memory = (char *)malloc((size_t)nbytes + (size_t)align + 64);
  if (!memory) return DLRS_DEV_OOM;
  ++fake.live;
  if (device.device_type == kDLOpenCL) {
    Object *object = (Object *)memory;
    object->bytes = (unsigned char *)(object + 1);
    *out = object;
  } else {
    uintptr_t at = ((uintptr_t)memory + 16 + align) & ~(uintptr_t)(align - 1);
    at += (uintptr_t)wrong(MISALIGNED);
    memcpy((void **)at - 1, &memory, sizeof memory);
    *out = (void *)(at - SHIFT);
  }
  return DLRS_OK;
}

static int32_t fake_free(void *context, DLDevice device, void *data, uint64_t nbytes, uint64_t align,
                         void *stream, dlrs_fault *fault) {
  void *memory = data;
  (void)context, (void)stream, (void)fault;
  CHECK(data != NULL && nbytes > 0 && align > 0);
  --fake.live;
  if (device.device_type != kDLOpenCL) {
    memcpy(&memory, (void **)((uintptr_t)data + SHIFT) - 1, sizeof memory);
  }
  free(memory);
  return DLRS_OK;
}

static unsigned char *behind(DLDevice device, const void *data, uint64_t offset) {
  if (device.device_type == kDLOpenCL) return ((const Object *)data)->bytes + offset;
  EQUAL(offset, 0);
  return (unsigned char *)((uintptr_t)data + (device.device_type == kDLExtDev ? SHIFT : 0));
}

static int32_t fake_copy(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream,
                         dlrs_fault *fault) {
  int32_t status = enter(fault), i;
  int64_t at[64] = {0};
  unsigned char *src, *dst;
  (void)context;
  EQUAL(plan->struct_size, sizeof *plan);
  CHECK(device.device_type == plan->src_device.device_type ||
        device.device_type == plan->dst_device.device_type);
  if (status != DLRS_OK) return status;
  if (plan->src_device.device_type != kDLCPU && plan->dst_device.device_type != kDLCPU &&
      plan->src_device.device_type != plan->dst_device.device_type)
    return DLRS_UNSUPPORTED; /* not between two kinds of devices */
  if (plan->ndim > (fake.able == STRIDED ? 64 : fake.able)) return DLRS_UNSUPPORTED;
  ++fake.copies;
  fake.stream = stream;
  src = behind(plan->src_device, plan->src, plan->src_offset);
  dst = behind(plan->dst_device, plan->dst, plan->dst_offset);
  for (;;) {
    memcpy(dst, src, (size_t)plan->item_nbytes);
    for (i = plan->ndim - 1; i >= 0; --i) {
      src += plan->src_strides[i];
      dst += plan->dst_strides[i];
      if (++at[i] < plan->shape[i]) break;
      src -= plan->shape[i] * plan->src_strides[i];
      dst -= plan->shape[i] * plan->dst_strides[i];
      at[i] = 0;
    }
    if (i < 0) return DLRS_OK;
  }
}

static int32_t fake_sync(void *context, DLDevice device, void *stream, dlrs_fault *fault) {
  (void)context, (void)device, (void)stream;
  ++fake.syncs;
  return enter(fault);
}

static int32_t fake_query(void *context, DLDevice device, void *object, int32_t *done, dlrs_fault *fault) {
  int32_t status = enter(fault);
  (void)context, (void)device;
  *done = *(int *)object;
  return status;
}

static int32_t fake_make(void *context, DLDevice device, void **out, dlrs_fault *fault) {
  int32_t status = enter(fault);
  (void)context, (void)device;
  if (status != DLRS_OK || wrong(NOTHING)) return status;
  *out = malloc(sizeof(int));
  if (*out == NULL) return DLRS_DEV_OOM;
  *(int *)*out = fake.done;
  ++fake.events;
  return DLRS_OK;
}

static int32_t fake_drop(void *context, DLDevice device, void *object, dlrs_fault *fault) {
  (void)context, (void)device, (void)fault;
  free(object);
  --fake.events;
  return DLRS_OK;
}

static int *last_event;
static int32_t fake_order(void *context, DLDevice device, void *event, void *stream, dlrs_fault *fault) {
  (void)context, (void)device, (void)stream;
  last_event = (int *)event;
  return enter(fault);
}

static int32_t fake_pointer(void *context, const void *data, DLDevice *device, void **base,
                            uint64_t *nbytes, dlrs_fault *fault) {
  (void)context;
  *device = EXT;
  *base = (char *)(uintptr_t)data - 4;
  *nbytes = 400;
  return enter(fault);
}

static int waited;
static int32_t fake_wait(void *context, DLDevice device, void *event, dlrs_fault *fault) {
  (void)context, (void)device, (void)event;
  ++waited;
  return enter(fault);
}

static dlrs_backend table(void) {
  dlrs_backend backend = DLRS_INIT(dlrs_backend);
  backend.name = "stand-in";
  backend.context = &fake;
  backend.device_count = fake_count;
  backend.alloc = fake_alloc;
  backend.free = fake_free;
  backend.copy = fake_copy;
  backend.stream_sync = fake_sync;
  backend.event_query = fake_query;
  backend.stream_create = fake_make;
  backend.event_create = fake_make;
  backend.stream_destroy = fake_drop;
  backend.event_destroy = fake_drop;
  backend.event_record = fake_order;
  backend.event_wait = fake_order;
  backend.event_sync = fake_wait;
  backend.pointer = fake_pointer;
  return backend;
}

static dlrs_backend stand_in;

static void set(const dlrs_backend *ext, const dlrs_backend *opencl) {
  WORKS(dlrs_backend_set(kDLExtDev, ext, NULL, ERR));
  WORKS(dlrs_backend_set(kDLOpenCL, opencl, NULL, ERR));
}

static void setting(void) {
  const dlrs_backend *old = (const dlrs_backend *)&fake;
  dlrs_backend broken = stand_in;
  int32_t n = 5;
  DLManagedTensorVersioned *out;
  int64_t two = 2;
  t_before();
  REJECTS(DEVICE_TYPE, 1, DEVICE_TYPE, -1, dlrs_device_count(kDLExtDev, &n, ERR));
  EQUAL(n, 0);
  REJECTS(DEVICE_TYPE, ANY, ANY, -1, dlrs_tensor_new(&two, 1, F32, EXT, NULL, &out, ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_backend_set(kDLCPU, &stand_in, NULL, ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_backend_set(99, &stand_in, NULL, ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_backend_set(-1, NULL, NULL, ERR));
  broken.copy = NULL;
  REJECTS(NULL_ARG, 2, OPTION, -1, dlrs_backend_set(kDLExtDev, &broken, NULL, ERR));
  broken = stand_in;
  broken.free = NULL;
  REJECTS(NULL_ARG, 2, OPTION, -1, dlrs_backend_set(kDLExtDev, &broken, NULL, ERR));
  broken = stand_in;
  broken.reserved = 1;
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_backend_set(kDLExtDev, &broken, NULL, ERR));
  broken.struct_size = 16;
  REJECTS(STRUCT_SIZE, 2, ANY, -1, dlrs_backend_set(kDLExtDev, &broken, NULL, ERR));
  WORKS(dlrs_backend_set(kDLExtDev, &stand_in, &old, ERR));
  CHECK(old == NULL);
  WORKS(dlrs_device_count(kDLExtDev, &n, ERR));
  EQUAL(n, 3);
  WORKS(dlrs_backend_set(kDLExtDev, NULL, &old, ERR));
  CHECK(old == &stand_in);
}

/* ---- Copies ---------------------------------------------------------------------------------*/

#define ROOM 8192

typedef struct Place { /* one tensor of a device, whose whole memory is visible */
  DLManagedTensorVersioned *memory;
  DLManagedTensorVersioned tensor;
} Place;

static void fill_room(DLManagedTensorVersioned *room, const unsigned char *bytes) {
  int64_t n = ROOM;
  DLTensor host = t_describe((void *)(uintptr_t)bytes, t_dtype(kDLUInt, 8, 1), 1, &n, NULL);
  WORKS(dlrs_copy_desc(&host, 0, &room->dl_tensor, 0, NULL, ERR));
}

static void read_room(DLManagedTensorVersioned *room, unsigned char *bytes) {
  int64_t n = ROOM;
  DLTensor host = t_describe(bytes, t_dtype(kDLUInt, 8, 1), 1, &n, NULL);
  WORKS(dlrs_copy_desc(&room->dl_tensor, 0, &host, 0, NULL, ERR));
}

static DLTensor placed(DLManagedTensorVersioned *room, DLDataType dtype, int ndim, int64_t *shape,
                       int64_t *strides, uint64_t byte_offset) {
  DLTensor tensor = t_describe(room->dl_tensor.data, dtype, ndim, shape, strides);
  tensor.device = room->dl_tensor.device;
  tensor.byte_offset = byte_offset;
  return tensor;
}

static void copies(DLDevice from, DLDevice to, int able, int rounds) {
  static unsigned char seed[2][ROOM], want[ROOM], got[ROOM];
  static const int widths[] = {8, 16, 24, 32, 64, 96, 128, 4, 6};
  DLManagedTensorVersioned *src, *dst, *host_src, *host_dst;
  int64_t n = ROOM, shape[6], src_strides[6], dst_strides[6];
  int round, i;
  fake.able = able;
  WORKS(dlrs_tensor_new(&n, 1, t_dtype(kDLUInt, 8, 1), from, NULL, &src, ERR));
  WORKS(dlrs_tensor_new(&n, 1, t_dtype(kDLUInt, 8, 1), to, NULL, &dst, ERR));
  WORKS(dlrs_tensor_new(&n, 1, t_dtype(kDLUInt, 8, 1), CPU, NULL, &host_src, ERR));
  WORKS(dlrs_tensor_new(&n, 1, t_dtype(kDLUInt, 8, 1), CPU, NULL, &host_dst, ERR));
  for (round = 0; round < rounds; ++round) {
    int bits = widths[below(9)], ndim = (int)below(6);
    DLDataType dtype = bits == 4 ? t_dtype(kDLFloat4_e2m1fn, 4, 1)
                       : bits == 6 ? t_dtype(kDLFloat6_e2m3fn, 6, 1)
                                   : t_dtype(kDLUInt, 8, bits / 8);
    uint64_t src_offset, dst_offset;
    DLTensor a, b;
    for (i = 0; i < ndim; ++i) shape[i] = below(6) + (below(20) != 0);
    if (!scattered(ndim, shape, bits, 1, ROOM, src_strides, &src_offset)) continue;
    if (!scattered(ndim, shape, bits, 0, ROOM, dst_strides, &dst_offset)) continue;
    draw_bytes(seed, sizeof seed);
    fill_room(src, seed[0]);
    fill_room(host_src, seed[0]);
    fill_room(dst, seed[1]);
    fill_room(host_dst, seed[1]);
    a = placed(host_src, dtype, ndim, shape, src_strides, src_offset);
    b = placed(host_dst, dtype, ndim, shape, dst_strides, dst_offset);
    WORKS(dlrs_copy_desc(&a, 0, &b, 0, NULL, ERR));
    a = placed(src, dtype, ndim, shape, src_strides, src_offset);
    b = placed(dst, dtype, ndim, shape, dst_strides, dst_offset);
    WORKS(dlrs_copy_desc(&a, 0, &b, 0, NULL, ERR));
    read_room(host_dst, want);
    read_room(dst, got);
    if (!CHECK(memcmp(want, got, ROOM) == 0)) {
      printf("bits %d ndim %d able %d from %d to %d\n", bits, ndim, able, from.device_type, to.device_type);
      break;
    }
  }
  dlrs_release(src);
  dlrs_release(dst);
  dlrs_release(host_src);
  dlrs_release(host_dst);
  EQUAL(fake.live, 0);
}

static void all_pairs(void) {
  DLDevice devices[3];
  int i, j, able;
  devices[0] = CPU;
  devices[1] = EXT;
  devices[2] = OPENCL;
  for (able = DENSE; able <= STRIDED; ++able)
    for (i = 0; i < 3; ++i)
      for (j = 0; j < 3; ++j) copies(devices[i], devices[j], able, i || j ? 60 : 5);
}

/* Pieces larger than the staging buffer. */
static void large(void) {
  int64_t shape[2] = {3, 12 << 20}, strides[2] = {1, 3};
  DLManagedTensorVersioned *host, *there, *back;
  int64_t i, differ = 0;
  const unsigned char *x, *y;
  unsigned char *fill;
  fake.able = DENSE;
  WORKS(dlrs_tensor_new(shape, 2, t_dtype(kDLUInt, 8, 1), CPU, NULL, &host, ERR));
  fill = (unsigned char *)host->dl_tensor.data;
  for (i = 0; i < shape[0] * shape[1]; ++i) fill[i] = (unsigned char)(i * 2654435761u >> 13);
  WORKS(dlrs_to_device(host, EXT, 0, NULL, &there, ERR));
  EQUAL(there->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
  EQUAL(there->dl_tensor.device.device_type, kDLExtDev);
  WORKS(dlrs_contiguous(there, 'C', NULL, &back, ERR));
  CHECK(back == there);
  dlrs_release(back);
  WORKS(dlrs_to_device(there, CPU, 0, NULL, &back, ERR));
  CHECK(memcmp(back->dl_tensor.data, host->dl_tensor.data, (size_t)(shape[0] * shape[1])) == 0);
  dlrs_release(back);
  /* Columns there to rows here. */
  there->dl_tensor.strides[0] = strides[0];
  there->dl_tensor.strides[1] = strides[1];
  WORKS(dlrs_to_device(there, CPU, 0, NULL, &back, ERR));
  x = (const unsigned char *)back->dl_tensor.data;
  y = (const unsigned char *)host->dl_tensor.data;
  for (i = 0; i < shape[1]; ++i) differ += x[i] != y[3 * i] || x[shape[1] * 2 + i] != y[3 * i + 2];
  EQUAL(differ, 0);
  dlrs_release(back);
  dlrs_release(there);
  dlrs_release(host);
  EQUAL(fake.live, 0);
}

/* Rows larger than the staging buffer: pieces of one row, then of the next. */
static void large_rows(void) {
  enum { LANES = 65535, NBYTES = LANES * 8, COLUMNS = 65 };
  int64_t shape[2] = {2, COLUMNS}, strides[2] = {1, -1}, n = COLUMNS + 1, i, differ = 0;
  DLDataType dtype = t_dtype(kDLUInt, 64, LANES);
  DLManagedTensorVersioned *there, *here;
  DLTensor rows;
  char *fill, *got;
  fake.able = DENSE;
  WORKS(dlrs_tensor_new(&n, 1, dtype, EXT, NULL, &there, ERR));
  WORKS(dlrs_tensor_new(shape, 2, dtype, CPU, NULL, &here, ERR));
  fill = (char *)behind(EXT, there->dl_tensor.data, 0);
  for (i = 0; i < n; ++i) memset(fill + i * NBYTES, (int)(i + 1), NBYTES);
  rows = there->dl_tensor;
  rows.ndim = 2;
  rows.shape = shape;
  rows.strides = strides; /* backwards, so that elements stay apart; the second row one element on */
  rows.byte_offset = (COLUMNS - 1) * NBYTES;
  fake.copies = 0;
  WORKS(dlrs_copy_desc(&rows, 0, &here->dl_tensor, 0, NULL, ERR));
  EQUAL(fake.copies, 4); /* two pieces per row */
  got = (char *)here->dl_tensor.data;
  for (i = 0; i < 2 * COLUMNS; ++i) {
    char *item = got + i * NBYTES, *want = fill + (COLUMNS - 1 - i % COLUMNS + i / COLUMNS) * NBYTES;
    differ += memcmp(item, want, NBYTES) != 0;
  }
  EQUAL(differ, 0);
  dlrs_release(there);
  dlrs_release(here);
  EQUAL(fake.live, 0);
}

/* An address of one "ext_dev" is invalid on the host, and on another one. */
static void address_spaces(void) {
  static const int32_t ids[] = {0, 1};
  char text[99];
  int64_t n = 6;
  DLTensor src = t_describe((void *)(uintptr_t)4096, F32, 1, &n, NULL), dst = src;
  src.device = EXT;
  WORKS(dlrs_copy_explain(&src, 0, &dst, 0, NULL, text, sizeof text, NULL, ERR));
  WORKS(dlrs_copy_explain(&dst, 0, &src, 0, NULL, text, sizeof text, NULL, ERR));
  dst.data = (void *)(uintptr_t)4100;
  WORKS(dlrs_copy_explain(&src, 0, &dst, 0, NULL, text, sizeof text, NULL, ERR));
  WORKS(dlrs_copy_explain(&dst, 0, &src, 0, NULL, text, sizeof text, NULL, ERR));
  for (int i = 0; i < 2; ++i) {
    dst.device = t_device(kDLExtDev, ids[i]);
    t_before();
    EQUAL(dlrs_copy_explain(&src, 0, &dst, 0, NULL, text, sizeof text, NULL, ERR),
          ids[i] ? DLRS_OK : DLRS_OVERLAP_SRC_DST);
  }
  /* Offsets are compared within one object. */
  src.device = dst.device = OPENCL;
  dst.data = src.data;
  for (int i = 0; i < 3; ++i) {
    dst.byte_offset = i == 1 ? 24 : 4;
    if (i == 2) dst.data = (void *)(uintptr_t)8192;
    t_before();
    EQUAL(dlrs_copy_explain(&src, 0, &dst, 0, NULL, text, sizeof text, NULL, ERR),
          i ? DLRS_OK : DLRS_OVERLAP_SRC_DST);
  }
}

/* ---- Faults ---------------------------------------------------------------------------------*/

static struct {
  t_tensor host;
  DLManagedTensorVersioned *in, *there, *other, *out;
  const DLManagedTensorVersioned *from[2];
  DLManagedTensorVersioned *onto[2];
  dlrs_import_options import;
  void *handle;
} S;

static int64_t shape23[2] = {2, 3};

static void make(void) {
  memset(&S, 0, sizeof S);
  t_make(&S.host);
  WORKS(dlrs_tensor_new(shape23, 2, F32, EXT, NULL, &S.there, ERR));
  WORKS(dlrs_tensor_new(shape23, 2, F32, EXT, NULL, &S.other, ERR));
  S.other->dl_tensor.strides[0] = 1; /* not dense, so that copies of it are staged */
  S.other->dl_tensor.strides[1] = 2;
  S.in = &S.host.managed;
  S.from[0] = S.in;
  S.from[1] = S.there;
  S.onto[0] = S.there;
  S.onto[1] = S.other;
  S.import.struct_size = sizeof S.import;
  S.import.copy = 1;
  S.import.align_bytes = 4096;
}

/* Foreign to the library, and on the device. */
static void make_foreign(void) {
  static float there[6];
  make();
  S.host.managed.dl_tensor.device = EXT;
  S.host.managed.dl_tensor.data = (void *)((uintptr_t)there - SHIFT);
}
static void make_recorded(void) {
  make();
  WORKS(dlrs_ready_record(S.there, NULL, ERR));
}

#define CALL(name, call) \
  static int32_t name(void) { return call; }
CALL(news, dlrs_tensor_new(shape23, 2, F32, EXT, NULL, &S.out, ERR))
CALL(clones, dlrs_clone(S.in, EXT, NULL, &S.out, ERR))
CALL(clones_over, dlrs_clone(S.there, OPENCL, NULL, &S.out, ERR))
CALL(clones_back, dlrs_clone(S.there, CPU, NULL, &S.out, ERR))
CALL(clones_staged, dlrs_clone(S.other, CPU, NULL, &S.out, ERR))
CALL(goes, dlrs_to_device(S.in, EXT, 1, NULL, &S.out, ERR))
CALL(gathers, dlrs_contiguous(S.other, 'C', NULL, &S.out, ERR))
CALL(imports, dlrs_import_take(&S.in, &S.import, &S.out, ERR))
CALL(batches, dlrs_copy_batch(2, S.from, S.onto, NULL, NULL, ERR))
CALL(copies_there, dlrs_copy(S.in, S.there, NULL, ERR))
CALL(scatters, dlrs_copy(S.in, S.other, NULL, ERR))
CALL(marks, dlrs_ready_record(S.there, NULL, ERR))
CALL(waits, dlrs_ready_wait(S.there, EXT, NULL, ERR))
CALL(defers, dlrs_release_after_take(&S.in, EXT, NULL, ERR))
CALL(allots, dlrs_mem_alloc(EXT, 8, 64, NULL, &S.handle, ERR))

static void undo(int32_t status) {
  dlrs_release(S.out);
  if (status == DLRS_OK && S.handle) WORKS(dlrs_mem_free(EXT, S.handle, 8, 64, NULL, ERR));
  WORKS(dlrs_release_drain(NULL, ERR));
  dlrs_release(S.there);
  dlrs_release(S.other);
}

static const struct {
  const char *name;
  void (*make)(void);
  int32_t (*call)(void);
  int takes; /* S.in, whose deleter then runs in the end */
} calls[] = {{"tensor_new", make, news, 0},
             {"clone", make, clones, 0},
             {"clone to another kind of device", make, clones_over, 0},
             {"clone to the CPU", make, clones_back, 0},
             {"clone of a strided one", make, clones_staged, 0},
             {"to_device", make, goes, 0},
             {"contiguous", make, gathers, 0},
             {"import_take", make_foreign, imports, 1},
             {"copy_batch", make, batches, 0},
             {"copy", make, copies_there, 0},
             {"copy, staged", make, scatters, 0},
             {"ready_record", make, marks, 0},
             {"ready_record again", make_recorded, marks, 0},
             {"ready_wait", make_recorded, waits, 0},
             {"clone of a recorded one", make_recorded, clones_back, 0},
             {"release_after_take", make, defers, 1},
             {"mem_alloc", make, allots, 0}};

/* Whether there was such a point. */
static int point(size_t i, int way, int at) {
  static const int32_t codes[] = {DLRS_DEV_OOM, DLRS_ASYNC_FAULT, DLRS_CTX_LOST, DLRS_STREAM};
  const int memory = way >= NO_MEMORY;
  long deleted, live;
  int32_t status;
  int held, events;
  calls[i].make();
  deleted = t_deleted;
  live = inject_live();
  held = fake.live;
  events = fake.events;
  fake.calls = fake.fired = 0;
  if (memory) {
    inject_arm(at, way == NO_MEMORY_ANY_MORE);
  } else {
    fake.way = way;
    fake.fail_at = at;
    fake.status = codes[at % 4];
  }
  status = calls[i].call();
  fake.fail_at = 0;
  if (memory) fake.fired = inject_disarm();
  if (way == NOTHING || way == MISALIGNED) CHECK(!fake.fired || status != DLRS_OK);
  if (status != DLRS_OK) {
    CHECK(fake.fired && S.out == NULL && S.handle == NULL && S.in == &S.host.managed);
    if (way <= NO_STATUS) EQUAL(t_error.driver_code, 77);
    if (way <= NO_STATUS) EQUAL(status, way == FAILS ? fake.status : (int32_t)DLRS_CALLBACK);
    EQUAL(t_deleted, deleted);
    EQUAL(inject_live(), live);
    EQUAL(fake.live, held);
    EQUAL(fake.events, events);
    status = calls[i].call();
  }
  EQUAL(status, DLRS_OK);
  undo(status);
  EQUAL(t_deleted, deleted + calls[i].takes);
  EQUAL(fake.live, 0);
  EQUAL(fake.events, 0);
  return fake.fired || (!memory && at <= fake.calls);
}

static void faults(void) {
  static const char *const ways[] = {"fails",      "no status", "nothing",
                                     "misaligned", "no memory", "no memory any more"};
  long points = 0;
  size_t i;
  int way, at;
  fake.able = DENSE;
  fake.done = 1;
  for (i = 0; i < sizeof calls / sizeof *calls; ++i) {
    for (way = 0; way < WAYS; ++way) {
      char context[80];
      if (way >= NO_MEMORY && !inject_works()) continue;
      snprintf(context, sizeof context, "%s: %s", calls[i].name, ways[way]);
      t_context = context;
      for (at = 1; point(i, way, at) && at < 100; ++at) ++points;
      CHECK(at < 100);
    }
  }
  t_context = "";
  fake.done = 0;
  CHECK(points > 100); /* else they are not reached */
}

/* ---- The other slots ------------------------------------------------------------------------*/

static void asked(void) {
  dlrs_pointer_info info = DLRS_INIT(dlrs_pointer_info);
  void *data, *stream, *event;
  int32_t done = 7;
  info.reserved = 1;
  REJECTS(BAD_ARG, 3, OPTION, -1, dlrs_pointer_device(kDLExtDev, &done, &info, ERR));
  info.reserved = 0;
  WORKS(dlrs_pointer_device(kDLExtDev, &done, &info, ERR));
  CHECK(info.device.device_type == kDLExtDev && info.nbytes == 400);
  CHECK((uintptr_t)info.base == (uintptr_t)&done - 4);
  WORKS(dlrs_mem_alloc(EXT, 100, 0, NULL, &data, ERR));
  CHECK(data != NULL && fake.live == 1);
  WORKS(dlrs_mem_free(EXT, data, 100, 0, NULL, ERR));
  EQUAL(fake.live, 0);
  WORKS(dlrs_mem_alloc(EXT, 0, 0, NULL, &data, ERR));
  CHECK(data == NULL);
  WORKS(dlrs_mem_free(EXT, NULL, 0, 0, NULL, ERR));
  WORKS(dlrs_stream_create(EXT, &stream, ERR));
  WORKS(dlrs_stream_sync(EXT, stream, ERR));
  WORKS(dlrs_event_create(EXT, &event, ERR));
  WORKS(dlrs_event_record(EXT, event, stream, ERR));
  WORKS(dlrs_event_wait(EXT, event, NULL, ERR));
  CHECK(last_event == event);
  WORKS(dlrs_stream_wait(EXT, NULL, stream, ERR));
  WORKS(dlrs_stream_wait(EXT, stream, stream, ERR));
  WORKS(dlrs_event_sync(EXT, event, ERR));
  EQUAL(waited, 1);
  WORKS(dlrs_event_destroy(EXT, event, ERR));
  WORKS(dlrs_stream_destroy(EXT, stream, ERR));
  EQUAL(fake.events, 0);
  REJECTS(UNSUPPORTED, 1, ANY, -1, dlrs_stream_create(CPU, &stream, ERR));
  REJECTS(UNSUPPORTED, 1, ANY, -1, dlrs_event_create(CPU, &event, ERR));
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_mem_register_host(kDLExtDev, &fake, 8, ERR));
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_mem_unregister_host(kDLExtDev, &fake, ERR));
}

/* The driver reports 400 bytes from 4 before any address, of ext_dev:0. */
static void driver_level(void) {
  int64_t n = 99, more = 100;
  DLTensor tensor = t_describe((void *)(uintptr_t)4096, F32, 1, &n, NULL);
  tensor.device = EXT;
  WORKS(dlrs_validate(&tensor, 0, DLRS_LEVEL_DEVICE, ERR));
  tensor.shape = &more;
  WORKS(dlrs_validate(&tensor, 0, DLRS_LEVEL_STRICT, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, ANY, ANY, dlrs_validate(&tensor, 0, DLRS_LEVEL_DEVICE, ERR));
  tensor.shape = &n;
  tensor.device.device_id = 1;
  REJECTS(DEVICE_ID, 1, DEVICE_ID, -1, dlrs_validate(&tensor, 0, DLRS_LEVEL_DEVICE, ERR));
  EQUAL(t_error.limit, 0);
  tensor.device = t_device(kDLTrn, 0);
  WORKS(dlrs_backend_set(kDLTrn, &stand_in, NULL, ERR));
  REJECTS(DEVICE_TYPE, 1, DEVICE_TYPE, -1, dlrs_validate(&tensor, 0, DLRS_LEVEL_DEVICE, ERR));
  dlrs_backend silent = stand_in; /* undetermined, which is not a reason to fail */
  silent.pointer = NULL;
  WORKS(dlrs_backend_set(kDLTrn, &silent, NULL, ERR));
  WORKS(dlrs_validate(&tensor, 0, DLRS_LEVEL_DEVICE, ERR));
  WORKS(dlrs_backend_set(kDLTrn, NULL, NULL, ERR));
  REJECTS(BAD_ARG, 3, ANY, -1, dlrs_validate(&tensor, 0, 5, ERR));
}

/* This program loads no driver, so its file can be set. */
static void driver_paths(void) {
#if !defined(DLRS_NO_CUDA) && !defined(DLRS_NO_ROCM)
  int32_t n = 5;
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_driver_path_set(kDLCPU, "nothing", ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_driver_path_set(99, NULL, ERR));
  WORKS(dlrs_driver_path_set(kDLCUDA, "/nowhere/libcuda.so.1", ERR));
  WORKS(dlrs_driver_path_set(kDLROCM, "/nowhere/libamdhip64.so", ERR));
  /* Not REFUSED: dlopen keeps the text of its failure. */
  EQUAL(dlrs_device_count(kDLCUDA, &n, ERR), DLRS_DRV_MISSING);
  EQUAL(n, 0);
  EQUAL(dlrs_device_count(kDLROCMHost, &n, ERR), DLRS_DRV_MISSING);
  WORKS(dlrs_driver_path_set(kDLCUDA, NULL, ERR));
  WORKS(dlrs_driver_path_set(kDLROCM, NULL, ERR));
#endif
}

/* That NULL is refused before a backend is called: test_device.c. */
static void refusals(void) {
  void *out = NULL;
  REJECTS(BAD_ARG, 3, ANY, -1, dlrs_mem_alloc(EXT, 4, 3, NULL, &out, ERR));
  REJECTS(DEVICE_ID, 1, ANY, -1, dlrs_mem_alloc(t_device(kDLExtDev, -1), 4, 0, NULL, &out, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_stream_destroy(EXT, NULL, ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_stream_wait(t_device(kDLVulkan, 0), NULL, NULL, ERR));
}

/* ---- Order ----------------------------------------------------------------------------------*/

static void deferred(void) {
  t_tensor host;
  DLManagedTensorVersioned *held;
  uint64_t waiting = 9;
  long before;
  t_make(&host);
  before = t_deleted;
  held = &host.managed;
  last_event = NULL;
  WORKS(dlrs_release_after_take(&held, EXT, NULL, ERR));
  CHECK(held == NULL && t_deleted == before && last_event != NULL);
  WORKS(dlrs_release_drain(&waiting, ERR));
  CHECK(waiting == 1 && t_deleted == before);
  *last_event = 1;
  WORKS(dlrs_release_drain(NULL, ERR));
  EQUAL(t_deleted, before + 1);
  EQUAL(fake.events, 0);
  held = &host.managed;
  WORKS(dlrs_release_after_take(&held, CPU, NULL, ERR));
  EQUAL(t_deleted, before + 1);
  WORKS(dlrs_release_drain(&waiting, ERR));
  CHECK(waiting == 0 && t_deleted == before + 2);
  /* Faults: ownership of nothing is taken. */
  held = &host.managed;
  fake.calls = 0;
  fake.way = FAILS;
  fake.fail_at = 2;
  fake.status = DLRS_STREAM;
  EQUAL(dlrs_release_after_take(&held, EXT, NULL, ERR), DLRS_STREAM);
  CHECK(held == &host.managed && fake.events == 0);
  fake.fail_at = 0;
}

/* If an event cannot be queried, or not now, the library waits: nothing is released early. */
static void deferred_unasked(void) {
  t_tensor host;
  dlrs_backend mute = stand_in;
  DLManagedTensorVersioned *held = &host.managed;
  uint64_t waiting = 9;
  t_make(&host);
  long before = t_deleted;
  WORKS(dlrs_release_after_take(&held, EXT, NULL, ERR));
  *last_event = 1;
  fake.calls = 0;
  fake.way = FAILS;
  fake.fail_at = 1;
  fake.status = DLRS_CAPTURING;
  WORKS(dlrs_release_drain(&waiting, ERR));
  CHECK(waiting == 1 && t_deleted == before);
  WORKS(dlrs_release_drain(&waiting, ERR));
  CHECK(waiting == 0 && t_deleted == before + 1);
  fake.fail_at = 0;
  mute.event_query = NULL;
  waited = 0;
  set(&mute, &stand_in);
  held = &host.managed;
  WORKS(dlrs_release_after_take(&held, EXT, NULL, ERR));
  WORKS(dlrs_release_drain(&waiting, ERR));
  CHECK(waiting == 0 && t_deleted == before + 2 && waited == 1);
  set(&stand_in, &stand_in);
  EQUAL(fake.events, 0);
}

static void streams(void) {
  t_tensor host;
  DLManagedTensorVersioned *there;
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  int producer, consumer;
  char text[200];
  t_make(&host);
  fake.able = STRIDED;
  WORKS(dlrs_clone(&host.managed, EXT, NULL, &there, ERR));
  CHECK(fake.stream == NULL);
  options.dst_stream = &consumer;
  fake.syncs = 0;
  WORKS(dlrs_copy(&host.managed, there, &options, ERR));
  CHECK(fake.stream == &consumer && fake.syncs == 1);
  options.flags = DLRS_COPY_ASYNC;
  WORKS(dlrs_copy(&host.managed, there, &options, ERR));
  EQUAL(fake.syncs, 1);
  options.dst_stream = NULL;
  options.src_stream = &producer;
  WORKS(dlrs_copy(there, &host.managed, &options, ERR));
  CHECK(fake.stream == &producer && fake.syncs == 1);
  /* Staged copies are complete when the call returns. */
  fake.able = DENSE;
  there->dl_tensor.strides[0] = 1;
  there->dl_tensor.strides[1] = 2;
  WORKS(dlrs_copy(there, &host.managed, &options, ERR));
  CHECK(fake.syncs > 1);
  WORKS(dlrs_copy_explain(&there->dl_tensor, 0, &host.managed.dl_tensor, 0, NULL, text, sizeof text, NULL, ERR));
  CHECK(strcmp(text, "stand-in: asked when it is carried out; 4 bytes x 2 (12 <- 4) x 3 (4 <- 8)") == 0);
  dlrs_release(there);
  EQUAL(fake.events, 0);
}

/* An opaque handle has offsets, and none below its start. */
static void handles(void) {
  int64_t two = 2, down = -1;
  DLManagedTensorVersioned *there;
  DLTensor tensor, out;
  float values[2] = {0, 0};
  WORKS(dlrs_tensor_new(&two, 1, F32, OPENCL, NULL, &there, ERR));
  tensor = there->dl_tensor;
  out = t_describe(values, F32, 1, &two, NULL);
  tensor.strides = &down;
  REJECTS(OFFSET, ANY, BYTE_OFFSET, -1, dlrs_copy_desc(&tensor, 0, &out, 0, NULL, ERR));
  tensor.byte_offset = 4;
  WORKS(dlrs_copy_desc(&tensor, 0, &out, 0, NULL, ERR));
  tensor.data = NULL;
  REJECTS(DATA_NULL, ANY, DATA, -1, dlrs_copy_desc(&tensor, 0, &out, 0, NULL, ERR));
  dlrs_release(there);
}

int main(void) {
  stand_in = table();
  fake.count = 3;
  setting();
  set(&stand_in, &stand_in);
  all_pairs();
  large();
  large_rows();
  address_spaces();
  faults();
  fake.able = STRIDED;
  asked();
  driver_level();
  driver_paths();
  refusals();
  deferred();
  deferred_unasked();
  streams();
  handles();
  /* Removed while a tensor is alive: the tensor keeps its allocator. */
  {
    int64_t two = 2;
    DLManagedTensorVersioned *there;
    WORKS(dlrs_tensor_new(&two, 1, F32, EXT, NULL, &there, ERR));
    set(NULL, NULL);
    EQUAL(fake.live, 1);
    dlrs_release(there);
    EQUAL(fake.live, 0);
  }
  return t_close();
}
