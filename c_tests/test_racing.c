/* A caller's struct is read once. Every exported function that takes a struct or an array gets one
 * that changes while it is read, between two valid readings: the function's result must match one
 * value of every member, and only the given memory is accessed.
 *
 * First step by step: the struct is in an inaccessible page, and the handler permits every access
 * with a single step. The first k accesses see one reading, all later ones the other, for every k:
 * a second read of a member sees another value, in every run. (x86-64 Linux, without valgrind.)
 * Then, on any system, with a thread that writes the two in turn.
 *
 * tests/house requires a row for every export here. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#define STEPPED 1
#else
#define STEPPED 0
#endif

#include "guarded.h"
#include "harness.h"

enum { SMALL = 4, LARGE = 4096, ROOM = 4 << 20, TURNS = 60 };

/* ---- Changing structs -----------------------------------------------------------------------*/

typedef struct racing {
  DLManagedTensorVersioned managed;
  DLManagedTensor legacy;
  int64_t shape[4], strides[4], axes[4];
  const DLManagedTensorVersioned *sources[2];
  DLManagedTensorVersioned *targets[2];
  dlrs_view_step steps[2];
  dlrs_copy_options copy;
  uint64_t copy_more[4]; /* of a newer header: 0 */
  dlrs_alloc_options alloc;
  dlrs_import_options import;
  dlrs_print_options print;
  uint64_t print_more[4];
} racing;

/* The kinds of change: one member, and all of them. */
enum kind { SHAPE, NDIM, STRIDES, NO_STRIDES, OFFSET, DTYPE, FLAGS, DATA, EXTRAS, ALL, KINDS };
static const char *const kind_names[] = {"shape", "ndim", "strides", "NULL strides", "byte_offset",
                                         "dtype", "flags", "data", "options", "all"};

static racing *page;        /* the functions' arguments, in separate pages */
static size_t page_nbytes;
static racing readings[2];  /* its values */
static unsigned char *memory; /* ROOM bytes that contain both readings, and any mixture */
static guarded exact;       /* memory for the constant operand: it ends at a guard page */

/* The constant operand, of SMALL x 3 elements. */
static DLManagedTensorVersioned still;
static int64_t still_shape[2], still_strides[2];

static DLManagedTensorVersioned *source, *target; /* the two operands of this call */
static DLManagedTensorVersioned *base;            /* a tensor of the library */
static DLManagedTensorVersioned *out;
static DLManagedTensor *out_legacy;
static dlrs_error *const no_error = NULL;

/* ---- Rows -----------------------------------------------------------------------------------*/

#define S (&source->dl_tensor)
#define T (&target->dl_tensor)
#define R (&page->managed)
#define RT (&page->managed.dl_tensor)

static int64_t answer[8];
static char text[512];
static unsigned char plain[SMALL * 3 * 16];

#define ROW(name, call) \
  static int32_t row_##name(void) { return call; }

static int32_t with_overlap(int32_t (*call)(const DLManagedTensorVersioned *,
                                            DLManagedTensorVersioned *, const dlrs_copy_options *,
                                            dlrs_error *)) {
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  options.flags = DLRS_COPY_ALLOW_OVERLAP;
  return call(source, target, &options, no_error);
}

ROW(copy, dlrs_copy(source, target, &page->copy, no_error))
ROW(copy_overlap, with_overlap(dlrs_copy))
ROW(copy_desc, dlrs_copy_desc(S, source->flags, T, target->flags, NULL, no_error))
ROW(copy_explain, dlrs_copy_explain(S, 0, T, 0, NULL, text, sizeof text, NULL, no_error))
ROW(copy_batch, dlrs_copy_batch(2, page->sources, page->targets, NULL, NULL, no_error))
ROW(cast, dlrs_cast(source, target, &page->copy, no_error))
ROW(cast_overlap, with_overlap(dlrs_cast))
ROW(fill, dlrs_fill(R, plain, t_dtype(kDLFloat, 32, 1), NULL, no_error))
ROW(fill_converted, dlrs_fill(R, plain, t_dtype(kDLFloat, 64, 1), NULL, no_error))
ROW(fill_large, dlrs_fill(R, plain, t_dtype(kDLUInt, 8, 3), NULL, no_error))
ROW(equal, dlrs_equal(source, target, DLRS_EQUAL_VALUES, (int32_t *)answer, no_error))
ROW(max_diff, dlrs_max_diff(source, target, (double *)answer, no_error))
ROW(clone, dlrs_clone(R, CPU, &page->copy, &out, no_error))
ROW(contiguous, dlrs_contiguous(R, 'F', NULL, &out, no_error))
ROW(to_device, dlrs_to_device(R, CPU, 1, NULL, &out, no_error))
ROW(tensor_new, dlrs_tensor_new(page->shape, 2, F32, CPU, NULL, &out, no_error))
ROW(tensor_new_options, dlrs_tensor_new(page->shape, 2, F32, CPU, &page->alloc, &out, no_error))
ROW(tensor_new_like, dlrs_tensor_new_like(RT, &page->alloc, &out, no_error))
ROW(tensor_new_like_plain, dlrs_tensor_new_like(RT, NULL, &out, no_error))
ROW(allocator, dlrs_managed_tensor_allocator(RT, &out, NULL, NULL) == 0 ? 0 : 1)
ROW(tensor_wrap, dlrs_tensor_wrap(RT, 0, NULL, NULL, &out, no_error))
ROW(validate, dlrs_validate(RT, 0, DLRS_LEVEL_STRICT, no_error))
ROW(validate_managed, dlrs_validate_managed(R, DLRS_LEVEL_STRICT, no_error))
ROW(validate_legacy, dlrs_validate_legacy(&page->legacy, DLRS_LEVEL_LAYOUT, no_error))
ROW(validate_within, dlrs_validate_within(RT, 0, memory, ROOM, no_error))
ROW(numel, dlrs_numel(RT, answer, no_error))
ROW(itemsize_bits, dlrs_itemsize_bits(RT, 0, (uint64_t *)answer, no_error))
ROW(nbytes, dlrs_nbytes(RT, 0, (uint64_t *)answer, no_error))
ROW(is_contiguous, dlrs_is_contiguous(RT, 'C', (int32_t *)answer, no_error))
ROW(is_unique, dlrs_is_unique(RT, 0, (int32_t *)answer, no_error))
ROW(may_overlap, dlrs_may_overlap(S, 0, T, 0, (int32_t *)answer, no_error))
ROW(compact_strides, dlrs_compact_strides(page->shape, 2, 'C', answer, no_error))
ROW(strides_from_bytes, dlrs_strides_from_bytes(page->shape, page->strides, 2, 1, answer, no_error))
ROW(strides_to_bytes, dlrs_strides_to_bytes(page->shape, page->strides, 2, 8, answer, no_error))
ROW(tensor_to_string,
    dlrs_tensor_to_string(RT, 0, &page->print, text, sizeof text, NULL, no_error))
ROW(managed_to_string, dlrs_managed_to_string(R, NULL, text, sizeof text, NULL, no_error))
ROW(view_apply, dlrs_view_apply(base, page->steps, 2, &out, no_error))
ROW(view_as_strided,
    dlrs_view_as_strided(base, page->shape, page->strides, 2, 0, &out, no_error))
ROW(view_reshape, dlrs_view_reshape(base, page->shape, 2, &out, no_error))
ROW(view_expand, dlrs_view_expand(base, page->shape, 2, &out, no_error))
ROW(view_permute, dlrs_view_permute(base, page->axes, 2, &out, no_error))

static int32_t row_import(int32_t copy, int32_t order) {
  DLManagedTensorVersioned *taken = R;
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  options.level = DLRS_LEVEL_STRUCT;
  options.copy = copy;
  options.order = order;
  return dlrs_import_take(&taken, &options, &out, no_error);
}
ROW(import_boxed, row_import(-1, 0))
ROW(import_copied, row_import(1, 0))
ROW(import_dense, row_import(0, 'F'))

static int32_t row_import_options(void) {
  DLManagedTensorVersioned *taken = R;
  return dlrs_import_take(&taken, &page->import, &out, no_error);
}
static int32_t row_from_legacy(void) {
  DLManagedTensor *taken = &page->legacy;
  return dlrs_from_legacy_take(&taken, 0, &out, no_error);
}
static int32_t row_to_legacy(int32_t policy) {
  DLManagedTensorVersioned *taken = R;
  return dlrs_to_legacy_take(&taken, policy, &out_legacy, no_error);
}
ROW(to_legacy_refuse, row_to_legacy(DLRS_LEGACY_REFUSE))
ROW(to_legacy_drop, row_to_legacy(DLRS_LEGACY_DROP))
ROW(to_legacy_copy, row_to_legacy(DLRS_LEGACY_COPY))

/* ---- The table ------------------------------------------------------------------------------*/

enum what {
  ANSWERS,  /* no new tensor */
  MAKES,    /* a tensor with new memory */
  WRAPS,    /* a tensor over the described memory, or over `base` */
  WRITABLE, /* as WRAPS, but READ_ONLY tensors must fail */
  EITHER    /* WRAPS or MAKES */
};

typedef struct row {
  const char *name;
  int32_t (*call)(void);
  int operands; /* 1: what changes alone. 2: each side in turn. 3: both share one array of extents */
  enum what what;
  int code, bits, lanes;                   /* the changing operand */
  int still_code, still_bits, still_lanes; /* the other operand */
  uint64_t flags;
} row;

#define AS_F32 kDLFloat, 32, 1
#define PADDED DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED

static const row rows[] = {
    {"dlrs_copy", row_copy, 2, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_copy", row_copy_overlap, 3, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_copy_desc", row_copy_desc, 2, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_copy_explain", row_copy_explain, 2, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_copy_batch", row_copy_batch, 2, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_cast", row_cast, 2, ANSWERS, kDLComplex, 64, 1, kDLBool, 8, 1, 0},
    {"dlrs_cast", row_cast, 2, ANSWERS, kDLComplex, 64, 1, kDLFloat, 64, 1, 0},
    {"dlrs_cast", row_cast, 2, ANSWERS, kDLUInt, 4, 3, kDLInt, 8, 3, PADDED},
    {"dlrs_cast", row_cast, 2, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_cast", row_cast_overlap, 3, ANSWERS, kDLComplex, 64, 1, kDLBool, 8, 1, 0},
    {"dlrs_cast", row_cast_overlap, 3, ANSWERS, AS_F32, kDLComplex, 64, 1, 0},
    {"dlrs_fill", row_fill, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_fill", row_fill_converted, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_fill", row_fill_large, 1, ANSWERS, kDLComplex, 128, 3, AS_F32, 0},
    {"dlrs_equal", row_equal, 2, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_max_diff", row_max_diff, 2, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_clone", row_clone, 1, MAKES, AS_F32, AS_F32, 0},
    {"dlrs_clone", row_clone, 1, MAKES, kDLUInt, 4, 1, AS_F32, 0},
    {"dlrs_contiguous", row_contiguous, 1, MAKES, AS_F32, AS_F32, 0},
    {"dlrs_to_device", row_to_device, 1, MAKES, AS_F32, AS_F32, 0},
    {"dlrs_tensor_new", row_tensor_new, 1, MAKES, AS_F32, AS_F32, 0},
    {"dlrs_tensor_new", row_tensor_new_options, 1, MAKES, AS_F32, AS_F32, 0},
    {"dlrs_tensor_new_like", row_tensor_new_like, 1, MAKES, AS_F32, AS_F32, 0},
    {"dlrs_tensor_new_like", row_tensor_new_like_plain, 1, MAKES, AS_F32, AS_F32, 0},
    {"dlrs_managed_tensor_allocator", row_allocator, 1, MAKES, AS_F32, AS_F32, 0},
    {"dlrs_tensor_wrap", row_tensor_wrap, 1, WRAPS, AS_F32, AS_F32, 0},
    {"dlrs_import_take", row_import_boxed, 1, WRAPS, AS_F32, AS_F32, 0},
    {"dlrs_import_take", row_import_copied, 1, MAKES, AS_F32, AS_F32, 0},
    {"dlrs_import_take", row_import_dense, 1, EITHER, AS_F32, AS_F32, 0},
    {"dlrs_import_take", row_import_options, 1, EITHER, AS_F32, AS_F32, 0},
    {"dlrs_from_legacy_take", row_from_legacy, 1, WRAPS, AS_F32, AS_F32, 0},
    {"dlrs_to_legacy_take", row_to_legacy_refuse, 1, WRITABLE, AS_F32, AS_F32, 0},
    {"dlrs_to_legacy_take", row_to_legacy_refuse, 1, WRITABLE, kDLUInt, 4, 1, AS_F32, 0},
    {"dlrs_to_legacy_take", row_to_legacy_drop, 1, WRAPS, AS_F32, AS_F32, 0},
    {"dlrs_to_legacy_take", row_to_legacy_copy, 1, EITHER, AS_F32, AS_F32, 0},
    {"dlrs_to_legacy_take", row_to_legacy_copy, 1, EITHER, kDLUInt, 4, 1, AS_F32, 0},
    {"dlrs_validate", row_validate, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_validate", row_validate, 1, ANSWERS, kDLUInt, 4, 1, AS_F32, 0},
    {"dlrs_validate_managed", row_validate_managed, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_validate_managed", row_validate_managed, 1, ANSWERS, kDLUInt, 4, 1, AS_F32, 0},
    {"dlrs_validate_legacy", row_validate_legacy, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_validate_within", row_validate_within, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_numel", row_numel, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_itemsize_bits", row_itemsize_bits, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_nbytes", row_nbytes, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_nbytes", row_nbytes, 1, ANSWERS, kDLUInt, 4, 1, AS_F32, 0},
    {"dlrs_is_contiguous", row_is_contiguous, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_is_unique", row_is_unique, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_may_overlap", row_may_overlap, 2, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_compact_strides", row_compact_strides, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_strides_from_bytes", row_strides_from_bytes, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_strides_to_bytes", row_strides_to_bytes, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_tensor_to_string", row_tensor_to_string, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_managed_to_string", row_managed_to_string, 1, ANSWERS, AS_F32, AS_F32, 0},
    {"dlrs_view_apply", row_view_apply, 1, WRAPS, AS_F32, AS_F32, 0},
    {"dlrs_view_as_strided", row_view_as_strided, 1, WRAPS, AS_F32, AS_F32, 0},
    {"dlrs_view_reshape", row_view_reshape, 1, WRAPS, AS_F32, AS_F32, 0},
    {"dlrs_view_expand", row_view_expand, 1, WRAPS, AS_F32, AS_F32, 0},
    {"dlrs_view_permute", row_view_permute, 1, WRAPS, AS_F32, AS_F32, 0},
};

/* The others, and the reasons for having no row. */
static const char *const others[] = {
    /* No struct and no array of numbers. */
    "dlrs_device_count", "dlrs_device_format",     "dlrs_driver_path_set", "dlrs_dtype_from_kind", "dlrs_dtype_to_kind",
    "dlrs_dtype_format", "dlrs_dtype_format_as", "dlrs_dtype_parse",
    "dlrs_event_create", "dlrs_event_destroy",
    "dlrs_event_record", "dlrs_event_sync", "dlrs_event_wait",
    "dlrs_mem_alloc", "dlrs_mem_free", "dlrs_mem_register_host",
    "dlrs_mem_unregister_host", "dlrs_release_drain", "dlrs_status_name",
    "dlrs_stream_create", "dlrs_stream_destroy", "dlrs_stream_sync",
    "dlrs_stream_wait", "dlrs_version", "dlrs_version_string",
    /* Tables that are constant while they are set, and structs that are written. */
    "dlrs_abi_check", "dlrs_abi_layout", "dlrs_allocator_set", "dlrs_backend_set",
    "dlrs_error_forward", "dlrs_pointer_device", "dlrs_workers_new",
    /* They take workers. */
    "dlrs_workers_free", "dlrs_workers_run",
    /* They read only the tensor's deleter, or a block of the library's. */
    "dlrs_attach", "dlrs_detach", "dlrs_is_own", "dlrs_ready_record",
    "dlrs_ready_sync", "dlrs_ready_wait", "dlrs_ref_count",
    "dlrs_release", "dlrs_release_after_take", "dlrs_release_legacy", "dlrs_retain",
    "dlrs_set_flags", "dlrs_view_bitcast", "dlrs_view_diagonal",
    "dlrs_view_flip", "dlrs_view_lanes", "dlrs_view_narrow", "dlrs_view_normalize",
    "dlrs_view_read_only", "dlrs_view_select", "dlrs_view_slice", "dlrs_view_squeeze",
    "dlrs_view_transpose", "dlrs_view_unfold", "dlrs_view_unsqueeze",
    /* They need an interpreter; tensors are read as by dlrs_import_take and dlrs_to_legacy_take. */
    "dlrs_py_capsule_consume", "dlrs_py_capsule_new_legacy_take",
    "dlrs_py_capsule_new_take", "dlrs_py_error_set_as", "dlrs_py_export",
    "dlrs_py_export_desc", "dlrs_py_holder_get", "dlrs_py_holder_new_take", "dlrs_py_import",
    "dlrs_py_request_parse", "dlrs_py_wrap", "dlrs_stream_from_py", "dlrs_stream_to_py",
};

/* ---- The two readings -----------------------------------------------------------------------*/

static void fill_readings(const row *r, enum kind kind) {
  racing *a = &readings[0], *b = &readings[1];
  const int all = kind == ALL;
  memset(a, 0, sizeof *a);
  a->shape[0] = SMALL;
  a->shape[1] = 3;
  a->shape[2] = a->shape[3] = 8;
  a->strides[0] = 3;
  a->strides[1] = a->strides[2] = a->strides[3] = 1;
  a->axes[1] = 1;
  a->managed.version.major = DLPACK_MAJOR_VERSION;
  a->managed.version.minor = 1; /* strides may be missing */
  a->managed.flags = r->flags;
  a->managed.deleter = t_delete_versioned;
  a->legacy.deleter = t_delete_legacy;
  a->managed.dl_tensor = t_describe(memory, t_dtype(r->code, r->bits, r->lanes), 2, page->shape,
                                    page->strides);
  a->steps[0].struct_size = a->steps[1].struct_size = sizeof a->steps[0];
  a->steps[0].op = DLRS_VIEW_PERMUTE;
  a->steps[0].ndim = 2;
  a->steps[0].shape = page->axes;
  a->steps[1].op = DLRS_VIEW_RESHAPE;
  a->steps[1].ndim = 2;
  a->steps[1].shape = page->shape;
  a->copy.struct_size = sizeof a->copy;
  a->copy.threads = 1;
  a->alloc.struct_size = sizeof a->alloc;
  a->import.struct_size = sizeof a->import;
  a->import.level = DLRS_LEVEL_STRUCT;
  a->print.struct_size = sizeof a->print;
  *b = *a;
  if (kind == SHAPE || all) b->shape[0] = LARGE;
  if (kind == STRIDES || all) {
    b->strides[0] = 6;
    b->strides[1] = 2;
  }
  if (kind == NDIM || all) b->managed.dl_tensor.ndim = 4;
  if (kind == NO_STRIDES) b->managed.dl_tensor.strides = NULL;
  if (kind == OFFSET || all) b->managed.dl_tensor.byte_offset = 64;
  if (kind == DTYPE || all) b->managed.dl_tensor.dtype = t_dtype(kDLComplex, 128, r->lanes);
  if (kind == FLAGS || all) b->managed.flags ^= DLPACK_FLAG_BITMASK_READ_ONLY | PADDED;
  if (kind == DATA || all) b->managed.dl_tensor.data = memory + 4096;
  if (kind == EXTRAS || all) {
    b->axes[0] = 1;
    b->axes[1] = 0;
    b->steps[1].op = DLRS_VIEW_EXPAND;
    b->copy.flags = DLRS_COPY_ALLOW_OVERLAP;
    b->copy.struct_size = sizeof b->copy + sizeof b->copy_more;
    b->alloc.flags = PADDED;
    b->alloc.align_bytes = 4096;
    b->import.copy = 1;
    b->import.align_bytes = 4096;
    b->print.struct_size = sizeof b->print + sizeof b->print_more;
  }
  a->legacy.dl_tensor = a->managed.dl_tensor;
  b->legacy.dl_tensor = b->managed.dl_tensor;
}

/* ---- One reading after the other, step by step ----------------------------------------------*/

/* Written by the handlers, which run on the same thread. */
static volatile int armed;         /* the page is inaccessible */
static volatile long accesses;     /* so far */
static volatile long turn;         /* accesses that see the first reading */
static volatile int first_reading; /* which of the two that is */
static volatile unsigned char accessed[offsetof(racing, axes)]; /* how often, each address */
static char now[160];              /* for a crash at a wrong address */

#if STEPPED
static void say(const char *words) {
  if (write(1, words, strlen(words)) < 0) _exit(3);
}

static void show(int open) {
  if (mprotect(page, page_nbytes, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) _exit(3);
}

static void on_fault(int number, siginfo_t *info, void *context) {
  ucontext_t *thread = (ucontext_t *)context;
  unsigned char *address = (unsigned char *)info->si_addr;
  (void)number;
  if (!armed || address < (unsigned char *)page || address >= (unsigned char *)page + page_nbytes) {
    say("failed: memory outside of what was given is touched by ");
    say(now);
    say("\n0 passed, 1 failed\n");
    _exit(1);
  }
  show(1);
  if (accesses == turn) memcpy(page, &readings[!first_reading], sizeof *page);
  ++accesses;
  if ((size_t)(address - (unsigned char *)page) < sizeof accessed) {
    ++accessed[address - (unsigned char *)page];
  }
  thread->uc_mcontext.gregs[REG_EFL] |= 0x100; /* stop after this instruction */
}

static void on_step(int number, siginfo_t *info, void *context) {
  ucontext_t *thread = (ucontext_t *)context;
  (void)number, (void)info;
  thread->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)0x100;
  if (armed) show(0);
}

static int can_step(void) {
  const char *preloaded = getenv("LD_PRELOAD");
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = on_fault;
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
  action.sa_sigaction = on_step;
  sigaction(SIGTRAP, &action, NULL);
  return preloaded == NULL || strstr(preloaded, "vgpreload") == NULL;
}
#else
static void show(int open) { (void)open; }
static int can_step(void) { return 0; }
#endif

/* ---- What is checked after a call -----------------------------------------------------------*/

/* The allocator that the second round sets for the CPU: memory of exactly the requested size, up to
 * a guard page. */
static guarded given;
static uint64_t given_nbytes;
static void *give(void *context, uint64_t nbytes, uint64_t align_bytes, DLDevice device) {
  (void)context, (void)device;
  if (nbytes > given.room) return NULL;
  given_nbytes = nbytes;
  return given.base + (given.room - nbytes) / align_bytes * align_bytes;
}
static void take_back(void *context, void *data, uint64_t nbytes, uint64_t align_bytes,
                      DLDevice device) {
  (void)context, (void)data, (void)nbytes, (void)align_bytes, (void)device;
}
static dlrs_allocator exactly = {sizeof exactly, NULL, give, take_back};
static int by_allocator;

static int inside(const void *address, int64_t low, int64_t high, const unsigned char *first,
                  size_t nbytes) {
  const unsigned char *at = (const unsigned char *)address;
  return at + low >= first && at + high <= first + nbytes;
}

static void check_result(const row *r) {
  DLManagedTensorVersioned *made = out;
  const DLTensor *t;
  uint64_t nbytes = 0, item = 0;
  int64_t low = 0, high = 0;
  int32_t i;
  if (out_legacy != NULL) { /* a block has both structs; the legacy one begins inside the other */
    made = (DLManagedTensorVersioned *)((char *)out_legacy -
                                        offsetof(DLManagedTensorVersioned, dl_tensor));
  }
  if (made == NULL) return;
  t = &made->dl_tensor;
  CHECK(dlrs_validate(t, made->flags & ~DLPACK_FLAG_BITMASK_READ_ONLY, DLRS_LEVEL_LAYOUT, NULL) ==
        DLRS_OK);
  CHECK(dlrs_nbytes(t, made->flags, &nbytes, NULL) == DLRS_OK);
  CHECK(dlrs_itemsize_bits(t, made->flags, &item, NULL) == DLRS_OK);
  for (i = 0; nbytes > 0 && i < t->ndim; ++i) {
    const int64_t reach = (t->shape[i] - 1) * t->strides[i];
    *(reach < 0 ? &low : &high) += reach;
  }
  if (nbytes > 0) {
    low = (low * (int64_t)item - 7) / 8;
    high = ((high + 1) * (int64_t)item + 7) / 8;
  }
  {
    unsigned char *first = (unsigned char *)t->data + t->byte_offset;
    const int foreign = inside(first, low, high, memory, ROOM);
    if (r->what == WRAPS || r->what == WRITABLE) {
      const unsigned char *own = (unsigned char *)base->dl_tensor.data;
      CHECK(foreign || inside(first, low, high, own, LARGE * 12));
    } else if (!foreign || r->what == MAKES) {
      CHECK(!foreign && low == 0);
      if (by_allocator) {
        CHECK((uint64_t)high <= given_nbytes);
#ifdef __GLIBC__
      } else {
        CHECK((char *)first + high <= (char *)made + malloc_usable_size(made));
#endif
      }
      memset(first, 0, (size_t)high); /* valgrind and sanitizers read it, too */
    }
  }
  if (r->what == WRITABLE) {
    CHECK((made->flags & DLPACK_FLAG_BITMASK_READ_ONLY) == 0);
  }
  if (out_legacy != NULL && t->dtype.bits < 8) {
    CHECK((made->flags & PADDED) == 0); /* not expressible in a legacy struct */
  }
}

static void let_go(void) {
  if (out != NULL) out->deleter(out);
  if (out_legacy != NULL) out_legacy->deleter(out_legacy);
  out = NULL;
  out_legacy = NULL;
}

/* The two operands: the changing one is the source, or the target, or shares its extents with
 * it. */
static void place(const row *r, int side) {
  const size_t item = ((size_t)r->still_bits * (size_t)r->still_lanes + 7) / 8;
  const int shared = r->operands == 3;
  int i;
  still_shape[0] = SMALL;
  still_shape[1] = 3;
  still_strides[0] = 3;
  still_strides[1] = 1;
  still = t_managed(t_describe(guarded_place(&exact, SMALL * 3 * item, 2),
                               t_dtype(r->still_code, r->still_bits, r->still_lanes), 2,
                               shared ? page->shape : still_shape, still_strides),
                    r->flags);
  if (shared) still.dl_tensor.data = memory;
  source = side == 0 ? R : &still;
  target = side == 0 ? &still : R;
  for (i = 0; i < 2; ++i) {
    readings[i].sources[0] = readings[i].sources[1] = source;
    readings[i].targets[0] = readings[i].targets[1] = target;
  }
}

static long accepted, refused;

static void called(const row *r, int32_t status) {
  if (status == DLRS_OK) {
    ++accepted;
    check_result(r);
  } else {
    ++refused;
    CHECK(out == NULL && out_legacy == NULL);
  }
  let_go();
}

/* dlrs_validate looks first whether a tensor is a common one; the structs of dlrs_copy_batch must
 * not change; one array of extents is that of both operands. */
static int reads_once(const row *r) {
  const int again = strcmp(r->name, "dlrs_validate") == 0 || strcmp(r->name, "dlrs_copy_batch") == 0;
  return r->what == ANSWERS && r->operands < 3 && !again;
}

/* Every point at which the reading can change, until the call returns before it. No member of a
 * tensor that is only looked at is read again, and no value of its arrays. */
static void step_by_step(const row *r) {
  int most = 1; /* accesses to one address */
  size_t i;
  for (turn = 0;; ++turn) {
    int32_t status;
    memcpy(page, &readings[first_reading], sizeof *page);
    for (i = 0; i < sizeof accessed; ++i) accessed[i] = 0;
    accesses = 0;
    armed = 1;
    show(0);
    status = r->call();
    armed = 0;
    show(1);
    called(r, status);
    for (i = 0; i < sizeof accessed; ++i) most = accessed[i] > most ? accessed[i] : most;
    if (accesses <= turn) break;
  }
  if (reads_once(r)) EQUAL(most, 1);
}

static volatile int stop;

static void *write_in_turn(void *unused) {
  int next = 0, i;
  (void)unused;
  while (!stop) {
    const volatile uint64_t *from = (const volatile uint64_t *)(const void *)&readings[next];
    volatile uint64_t *to = (volatile uint64_t *)(void *)page;
    for (i = 0; i < (int)(sizeof *page / sizeof *to); ++i) to[i] = from[i];
    next = !next;
  }
  return NULL;
}

static void by_thread(const row *r) {
  pthread_t thread;
  int i;
  memcpy(page, &readings[0], sizeof *page);
  stop = 0;
  if (pthread_create(&thread, NULL, write_in_turn, NULL) != 0) abort();
  for (i = 0; i < TURNS; ++i) called(r, r->call());
  stop = 1;
  pthread_join(thread, NULL);
}

static void run(void (*how)(const row *), const char *words) {
  size_t i;
  int kind, side;
  for (i = 0; i < sizeof rows / sizeof *rows; ++i) {
    const int makes = rows[i].what == MAKES || rows[i].what == EITHER;
    for (kind = 0; kind < KINDS && (makes || !by_allocator); ++kind) {
      for (side = 0; side < (rows[i].operands == 2 ? 2 : 1); ++side) {
        fill_readings(&rows[i], (enum kind)kind);
        place(&rows[i], side);
        for (first_reading = 0; first_reading < 2; ++first_reading) {
          snprintf(now, sizeof now, "%s, row %d, %s changes, %s, %s", rows[i].name, (int)i,
                   kind_names[kind], side == 0 ? "first operand" : "second operand", words);
          how(&rows[i]);
        }
      }
    }
  }
}

static int has_row(const char *name) {
  size_t i;
  for (i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (strcmp(rows[i].name, name) == 0) return 1;
  }
  return 0;
}

int main(void) {
  size_t i;
  const int64_t shape[2] = {LARGE, 3};
  guarded all = guarded_new(ROOM), own = guarded_new(sizeof *page);
  const int steps = can_step();
  memory = all.base;
  memset(memory, 0, ROOM);
  page = (racing *)(void *)own.base;
  page_nbytes = own.room;
  exact = guarded_new(SMALL * 3 * 64);
  given = guarded_new(LARGE * 3 * 64);
  for (i = 0; i < sizeof others / sizeof *others; ++i) CHECK(!has_row(others[i]));
  t_context = now;
  CHECK(dlrs_tensor_new(shape, 2, F32, CPU, NULL, &base, NULL) == DLRS_OK);
  for (by_allocator = 0; by_allocator < 2; ++by_allocator) {
    CHECK(dlrs_allocator_set(kDLCPU, by_allocator ? &exactly : NULL, NULL, NULL) == DLRS_OK);
    if (steps) run(step_by_step, "step by step");
    run(by_thread, "by a thread");
  }
  CHECK(dlrs_allocator_set(kDLCPU, NULL, NULL, NULL) == DLRS_OK);
  CHECK(accepted > 1000 && refused > 1000);
  dlrs_release(base);
  t_context = "";
  printf("%ld calls accepted, %ld refused\n", accepted, refused);
  return t_close();
}
