/* dlrs_copy_desc and dlrs_clone against an oracle that copies one bit at a time: random layouts,
 * between guard pages, on threads with little stack, on every machine.
 * `test_engine [cases [seed]]`. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "by_bit.h"
#include "dlpack_rs.h"
#include "guarded.h"
#include "harness.h"
#include "random.h"
#include "small_stack.h"
#include "woven.h"

enum { DIMS = 8, ROOM = 64 << 20 };

static guarded from_room, to_room;
static unsigned char *expected;
static long passed, failed;

/* ---- Random numbers -------------------------------------------------------------------------*/

static int64_t one_of(const int64_t *values, size_t count) {
  return values[below((int64_t)count)];
}
#define ONE_OF(...) \
  one_of((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void fill(unsigned char *bytes, size_t nbytes) {
  size_t i;
  for (i = 0; i + 6 <= nbytes; i += 6) {
    uint64_t word = draw();
    int k;
    for (k = 0; k < 6; ++k) bytes[i + k] = (unsigned char)(word >> (8 * k));
  }
  for (; i < nbytes; ++i) bytes[i] = (unsigned char)draw();
}

/* ---- Cases ----------------------------------------------------------------------------------*/

/* Strides count elements of `width` bits; `tensor` gets them as they are. */
typedef struct layout {
  int64_t strides[DIMS];
  int64_t low, high; /* bytes before and behind the first element's start */
} layout;

typedef struct one_case {
  const char *name;
  DLDataType dtype;
  uint64_t flags;
  int64_t width;
  int32_t ndim;
  int64_t shape[DIMS];
  layout src, dst;
  dlrs_copy_options options;
  int clone, without_memory;
} one_case;

static void describe(const one_case *c) {
  int i;
  printf("%s: code %d, bits %d, lanes %d, flags %d, threads %u%s\n", c->name, c->dtype.code,
         c->dtype.bits, c->dtype.lanes, (int)c->flags, c->options.threads,
         c->options.parallel_for ? ", hook" : c->without_memory ? ", malloc fails" : "");
  for (i = 0; i < c->ndim; ++i) {
    printf("  extent %lld: from %lld to %lld\n", (long long)c->shape[i],
           (long long)c->src.strides[i], (long long)c->dst.strides[i]);
  }
}

static void measure(const one_case *c, layout *side) {
  int64_t low = 0, high = c->width;
  int i;
  for (i = 0; i < c->ndim; ++i) {
    int64_t reach = (c->shape[i] - 1) * side->strides[i] * c->width;
    if (reach < 0) low -= reach; else high += reach;
  }
  side->low = (low + 7) / 8;
  side->high = (high + 7) / 8;
}

static void oracle(const one_case *c, const unsigned char *from, unsigned char *to) {
  copy_by_bit(c->ndim, c->shape, c->width, from, 8 * c->src.low, c->src.strides, to, 8 * c->dst.low,
              c->dst.strides);
}

static DLTensor tensor_of(one_case *c, layout *side, unsigned char *bytes) {
  DLTensor tensor;
  uint64_t offset = draw() % 3 * 5;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = bytes + side->low - offset;
  tensor.byte_offset = offset;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = c->ndim;
  tensor.dtype = c->dtype;
  tensor.shape = c->shape;
  tensor.strides = side->strides;
  return tensor;
}

static int report(one_case *c, const char *what, const dlrs_error *error) {
  ++failed;
  printf("failed: %s %s\n", what, error->message);
  describe(c);
  return 0;
}

static int same(one_case *c, const unsigned char *found, size_t nbytes, const dlrs_error *error) {
  size_t i;
  for (i = 0; i < nbytes; ++i) {
    if (found[i] != expected[i]) {
      printf("byte %ld is %02x, not %02x\n", (long)i, found[i], expected[i]);
      return report(c, "wrong bytes", error);
    }
  }
  ++passed;
  return 1;
}

/* The call under test. */
typedef struct one_call {
  const one_case *c;
  const DLTensor *from, *to;
  const DLManagedTensorVersioned *source;
  DLManagedTensorVersioned *clone;
  dlrs_error error;
  dlrs_status status;
} one_call;

static void work(void *argument) {
  one_call *call = (one_call *)argument;
  const one_case *c = call->c;
  if (call->source != NULL) {
    call->status = dlrs_clone(call->source, call->source->dl_tensor.device, &c->options,
                              &call->clone, &call->error);
  } else {
    if (c->without_memory) inject_arm(1, 1);
    call->status = dlrs_copy_desc(call->from, c->flags, call->to, c->flags, &c->options,
                                  &call->error);
    if (c->without_memory) inject_disarm();
  }
}

static void run(one_call *call) {
  call->error.struct_size = sizeof call->error;
  small_stack_run(call->c->name, work, call);
}

static int check_clone(one_case *c, const DLTensor *from, const unsigned char *bytes) {
  DLManagedTensorVersioned source, *clone;
  one_call call;
  int64_t step = c->width, total = 1;
  size_t nbytes;
  int i, ok;
  memset(&source, 0, sizeof source);
  source.version.major = DLPACK_MAJOR_VERSION;
  source.version.minor = DLPACK_MINOR_VERSION;
  source.flags = c->flags;
  source.dl_tensor = *from;
  for (i = c->ndim; i-- > 0; total *= c->shape[i]) c->dst.strides[i] = total;
  nbytes = (size_t)(total * step + 7) / 8;
  c->dst.low = 0;
  memset(expected, 0, nbytes);
  oracle(c, bytes, expected);
  memset(&call, 0, sizeof call);
  call.c = c;
  call.source = &source;
  run(&call);
  if (call.status != DLRS_OK) return report(c, "dlrs_clone", &call.error);
  clone = call.clone;
  /* The bits behind the last element of a packed tensor are unused. */
  if (total * step % 8 != 0) {
    unsigned char mask = (unsigned char)((1u << (total * step % 8)) - 1);
    ((unsigned char *)clone->dl_tensor.data)[nbytes - 1] &= mask;
  }
  ok = same(c, (const unsigned char *)clone->dl_tensor.data, nbytes, &call.error);
  clone->deleter(clone);
  return ok;
}

/* 0 when it failed; a case that exceeds the memory is left out. */
static int check(one_case *c) {
  DLTensor from, to;
  one_call call;
  unsigned char *source, *target;
  size_t source_bytes, target_bytes;
  measure(c, &c->src);
  measure(c, &c->dst);
  source_bytes = (size_t)(c->src.low + c->src.high);
  target_bytes = (size_t)(c->dst.low + c->dst.high);
  if (source_bytes + 256 > ROOM || target_bytes + 256 > ROOM) return 1;
  source = guarded_place(&from_room, source_bytes, (unsigned)draw());
  target = guarded_place(&to_room, target_bytes, (unsigned)draw());
  fill(source, source_bytes);
  from = tensor_of(c, &c->src, source);
  if (c->clone) return check_clone(c, &from, source);
  fill(target, target_bytes);
  memcpy(expected, target, target_bytes);
  oracle(c, source, expected);
  to = tensor_of(c, &c->dst, target);
  memset(&call, 0, sizeof call);
  call.c = c;
  call.from = &from;
  call.to = &to;
  run(&call);
  if (call.status != DLRS_OK) return report(c, "dlrs_copy_desc", &call.error);
  return same(c, target, target_bytes, &call.error);
}

/* ---- Random cases ---------------------------------------------------------------------------*/

static const int64_t EXTENTS[] = {1,  2,  2,  3,  3,  4,  5,  6,  7,  8,  9,   12,
                                  15, 16, 17, 24, 31, 33, 48, 64, 65, 100, 129, 300};

/* Strides with distinct elements: a random order, random gaps, random signs. */
static void draw_strides(const one_case *c, int64_t gaps, int64_t *strides) {
  int order[DIMS], i;
  int64_t next = 1;
  for (i = 0; i < c->ndim; ++i) order[i] = i;
  for (i = c->ndim - 1; i > 0; --i) {
    int other = (int)below(i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  if (below(4) == 0) {
    for (i = 0; i < c->ndim; ++i) order[i] = c->ndim - 1 - i;
  }
  for (i = 0; i < c->ndim; ++i) {
    if (below(4) < gaps) next += ONE_OF(1, 2, 1, 1, 64, 3);
    strides[order[i]] = below(4) == 0 ? -next : next;
    next *= c->shape[order[i]];
  }
}

static int hook(void *context, size_t n, void (*body)(void *, size_t), void *body_context) {
  size_t i;
  ++*(long *)context;
  for (i = n; i-- > 0;) body(body_context, i);
  return 0;
}

static int refusing_hook(void *context, size_t n, void (*body)(void *, size_t), void *ignored) {
  (void)n, (void)body, (void)ignored;
  ++*(long *)context;
  return 1;
}

static long hooked;

static void draw_options(one_case *c) {
  memset(&c->options, 0, sizeof c->options);
  c->options.struct_size = sizeof c->options;
  c->options.threads = (uint32_t)ONE_OF(0, 1, 1, 2, 3, 7);
  if (below(8) == 0) {
    c->options.parallel_for = below(4) == 0 ? refusing_hook : hook;
    c->options.parallel_context = &hooked;
  }
  c->clone = below(6) == 0;
  /* The thread queue and a clone need memory; other allocations are optional. */
  c->without_memory = !c->clone && c->options.threads <= 1 && below(8) == 0;
}

static DLDataType dtype_of(int code, int64_t bits, int64_t lanes) {
  DLDataType dtype;
  dtype.code = (uint8_t)code;
  dtype.bits = (uint8_t)bits;
  dtype.lanes = (uint16_t)lanes;
  return dtype;
}

static void draw_bytes(one_case *c) {
  int64_t bits = ONE_OF(8, 8, 16, 32, 32, 64, 64);
  c->name = "bytes";
  c->dtype = dtype_of(kDLUInt, bits, ONE_OF(1, 1, 1, 1, 2, 3, 4, 5, 12, 16, 100));
  if (below(4) == 0) c->dtype = dtype_of(kDLComplex, ONE_OF(32, 64, 128), 1);
  if (below(4) == 0) c->dtype = dtype_of(kDLInt, ONE_OF(1, 2, 4), 8); /* bytes after all */
  c->flags = 0;
  c->width = c->dtype.bits * c->dtype.lanes;
  if (below(8) == 0) { /* a byte or two for each packed element */
    c->dtype = dtype_of(kDLFloat6_e2m3fn, 6, ONE_OF(1, 1, 2));
    c->flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    c->width = (6 * c->dtype.lanes + 7) / 8 * 8;
  }
}

static void draw_packed(one_case *c) {
  int64_t bits = ONE_OF(1, 2, 4, 4, 4);
  c->name = "bits";
  c->flags = 0;
  c->dtype = dtype_of(kDLUInt, bits, ONE_OF(1, 1, 1, 3, 5));
  if (below(3) == 0) c->dtype = dtype_of(kDLFloat6_e3m2fn, 6, ONE_OF(1, 1, 3));
  if (below(3) == 0) c->dtype = dtype_of(kDLFloat4_e2m1fn, 4, 1);
  if (below(5) == 0) { /* unknown to DLPack, but copied */
    c->dtype = dtype_of(99, ONE_OF(3, 5, 7, 9, 12, 63, 131), ONE_OF(1, 1, 3));
    c->options.flags = DLRS_COPY_RAW_BYTES;
  }
  c->width = c->dtype.bits * c->dtype.lanes;
}

static int random_case(int packed) {
  one_case c;
  int64_t most, total = 1, dims = below(DIMS + 1);
  memset(&c, 0, sizeof c);
  draw_options(&c);
  if (packed) draw_packed(&c); else draw_bytes(&c);
  most = packed ? 3000 : (below(8) == 0 ? 30000 : 2000) * 8 / (8 + c.width / 8);
  while (dims-- > 0) {
    int64_t extent = one_of(EXTENTS, sizeof EXTENTS / sizeof *EXTENTS);
    if (total * extent > most) continue;
    c.shape[c.ndim++] = extent;
    total *= extent;
  }
  draw_strides(&c, below(4), c.src.strides);
  draw_strides(&c, below(2) * below(4), c.dst.strides);
  if (below(8) == 0) woven(c.ndim, c.shape, c.src.strides);
  if (below(3) == 0) woven(c.ndim, c.shape, c.dst.strides);
  for (dims = 0; dims < c.ndim; ++dims) {
    if (below(8) == 0) c.src.strides[dims] = 0;
  }
  return check(&c);
}

/* Byte elements in groups with strides of any number of bytes: elements of every alignment. */
static int grouped_case(void) {
  one_case c;
  int64_t group = ONE_OF(1, 2, 3, 4, 6, 8, 12, 16, 24), next;
  int i;
  memset(&c, 0, sizeof c);
  draw_options(&c);
  c.name = "groups";
  c.dtype = dtype_of(kDLUInt, 8, 1);
  c.width = 8;
  c.ndim = 3;
  for (i = 0; i < 2; ++i) c.shape[i] = ONE_OF(3, 16, 17, 40, 64, 70, 128, 200);
  c.shape[2] = group;
  c.src.strides[2] = c.dst.strides[2] = 1;
  next = group + ONE_OF(0, 0, 1, 7, 64);
  c.src.strides[1] = below(4) == 0 ? -next : next;
  c.src.strides[0] = next * c.shape[1] + ONE_OF(0, 0, 1, 64, 5);
  next = group + ONE_OF(0, 0, 0, 3, 64);
  i = (int)below(2); /* transposed or not */
  c.dst.strides[i] = below(4) == 0 ? -next : next;
  c.dst.strides[1 - i] = next * c.shape[i] + ONE_OF(0, 0, 1, 64, 5);
  return check(&c);
}

/* Rows of bytes, or of a few, interleaved, or in the gaps of others: many, of few elements. */
static int woven_case(void) {
  one_case c;
  int i;
  memset(&c, 0, sizeof c);
  draw_options(&c);
  c.clone = 0;
  c.name = "woven";
  c.dtype = dtype_of(kDLUInt, 8, ONE_OF(1, 1, 1, 2, 2, 3, 4, 8, 16, 24, 32));
  c.width = c.dtype.bits * c.dtype.lanes;
  c.ndim = 2 + (int32_t)below(2);
  for (i = 0; i < c.ndim; ++i) c.shape[i] = 2 + below(8);
  c.shape[below(c.ndim)] = 2048 / (c.ndim == 2 ? 2 : 4) + below(300);
  draw_strides(&c, below(4), c.src.strides);
  if (below(3) == 0) c.src.strides[below(c.ndim)] = 0;
  woven(c.ndim, c.shape, c.dst.strides);
  return check(&c);
}

/* Large enough for threads (4 MiB each) and for non-temporal stores (from 16 MiB on, and from 20
 * where one block is copied); and for a staging buffer, whose allocation may fail. */
static void large_cases(void) {
  static const struct {
    const char *name;
    int bits;
    int64_t rows, columns, by_row, by_column; /* of the source; the destination is dense */
  } cases[] = {
      {"dense", 32, 5600, 1000, 1000, 1},       {"rows", 32, 4700, 1000, 1003, 1},
      {"transpose, 1 byte", 8, 4200, 4200, 1, 4200}, {"transpose, 2", 16, 3000, 2900, 1, 3000},
      {"transpose, 4", 32, 2100, 2100, 1, 2103}, {"transpose, 8", 64, 1500, 1450, 1, 1501},
      {"transpose, 3", 24, 2500, 2400, 1, 2500}, {"transpose, 12", 96, 1300, 1200, 1, 1301},
      {"backwards", 16, 3000, 2900, -2900, -1}, {"steps", 8, 3000, 6000, 18000, 3},
      {"fill", 32, 4700, 1000, 1, 0},           {"packed", 4, 5900, 5900, 5902, 1},
      {"packed transpose", 4, 5900, 5900, 1, 5900}, {"packed, odd rows", 4, 5900, 5901, 5903, 1},
  };
  size_t i;
  int threads;
  for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (threads = 0; threads < 5; ++threads) {
      one_case c;
      memset(&c, 0, sizeof c);
      c.name = cases[i].name;
      c.without_memory = threads == 4;
      c.options.struct_size = sizeof c.options;
      c.options.threads = (uint32_t)threads % 4 + 1;
      if (threads == 3) {
        c.options.parallel_for = i % 2 ? refusing_hook : hook;
        c.options.parallel_context = &hooked;
      }
      c.dtype = cases[i].bits % 24 == 0 ? dtype_of(kDLUInt, 8, cases[i].bits / 8)
                                        : dtype_of(kDLUInt, cases[i].bits, 1);
      c.width = cases[i].bits;
      c.ndim = 2;
      c.shape[0] = cases[i].rows;
      c.shape[1] = cases[i].columns;
      c.src.strides[0] = cases[i].by_row;
      c.src.strides[1] = cases[i].by_column;
      c.dst.strides[0] = cases[i].columns;
      c.dst.strides[1] = 1;
      check(&c);
    }
  }
  if (hooked == 0) {
    ++failed;
    printf("failed: the hook never ran\n");
  }
}

/* Data that is computed once for a whole copy is stored in allocated memory, if there is any:
 * offsets of rows of several dimensions, and repeated elements. */
static void memory_cases(void) {
  static const struct {
    const char *name;
    int64_t shape[4], strides[4]; /* of the source; the destination is dense */
  } cases[] = {
      {"rows of three dimensions", {11, 13, 9, 70}, {1, 99 * 71, 11, 99}},
      {"columns of three", {70, 11, 13, 9}, {1, 9 * 71, 99 * 71, 71}},
      {"both of several", {7, 19, 11, 23}, {11, 23 * 77, 1, 77}},
      {"more than are kept", {65, 13, 5, 17}, {5, 65 * 5, 1, 65 * 67}},
      {"a column, repeated", {40, 50, 9, 3}, {1, 40, 0, 2000}},
      {"a row, repeated", {6, 50, 70, 1}, {1, 0, 6, 1}},
  };
  size_t i;
  int size, without;
  for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (size = 1; size <= 16; ++size) {
      for (without = 0; without < 2; ++without) {
        one_case c;
        int dim;
        int64_t stride = 1;
        memset(&c, 0, sizeof c);
        c.name = cases[i].name;
        c.without_memory = without;
        c.options.struct_size = sizeof c.options;
        c.options.threads = 1;
        c.dtype = dtype_of(kDLUInt, 8, size);
        c.width = 8 * size;
        c.ndim = 4;
        for (dim = 3; dim >= 0; --dim) {
          c.shape[dim] = cases[i].shape[dim];
          c.src.strides[dim] = cases[i].strides[dim];
          c.dst.strides[dim] = stride;
          stride *= c.shape[dim];
        }
        check(&c);
      }
    }
  }
}

int main(int argc, char **argv) {
  long cases = argc > 1 ? atol(argv[1]) : 4000, i;
  if (argc > 2) state ^= strtoull(argv[2], NULL, 0);
  from_room = guarded_new(ROOM);
  to_room = guarded_new(ROOM);
  expected = (unsigned char *)malloc(ROOM);
  if (expected == NULL) return 1;
  small_stack_begin();
  for (i = 0; i < cases && failed < 5; ++i) random_case(0);
  for (i = 0; i < cases && failed < 5; ++i) random_case(1);
  for (i = 0; i < cases / 8 && failed < 5; ++i) grouped_case();
  for (i = 0; i < cases / 8 && failed < 5; ++i) woven_case();
  if (failed < 5) memory_cases();
  if (failed < 5 && argc == 1) large_cases(); /* minutes under valgrind, which passes a number */
  small_stack_end();
  printf("%ld passed, %ld failed\n", passed, failed);
  free(expected);
  return failed != 0 || passed == 0;
}
