// kernels.cu for AMD's compiler, on the host: what its lines for AMD do, and whether anything in it is
// undefined. Blocks run in sequence, their threads as coroutines that switch at __syncthreads.
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __shared__ static thread_local // blocks run one after another
struct dim3 { unsigned x, y, z; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static thread_local dim3 gridDim, blockIdx, blockDim, threadIdx;
static void __syncthreads();
static unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
// Selects bytes of two words by number, 0 to 7.
static unsigned __builtin_amdgcn_perm(unsigned high, unsigned low, unsigned pick) {
  unsigned long long both = (unsigned long long)high << 32 | low;
  unsigned all = 0;
  for (int i = 0; i < 4; ++i) all |= (unsigned)(both >> 8 * (pick >> 8 * i & 7) & 255) << 8 * i;
  return all;
}

namespace kernels {
#include "../../crates/gpu/src/kernels.cu"
}
using kernels::Args;

namespace {
struct Kernel { const char *name; void (*run)(const Args); bool syncs; };
const Kernel all[] = {
  {"dlrs_run", kernels::dlrs_run, false},
  {"dlrs_run_wide", kernels::dlrs_run_wide, false},
  {"dlrs_run_narrow", kernels::dlrs_run_narrow, false},
  {"dlrs_bits", kernels::dlrs_bits, false},
  {"dlrs_transpose", kernels::dlrs_transpose, true},
  {"dlrs_tile", kernels::dlrs_tile, true},
  {"dlrs_tile_narrow", kernels::dlrs_tile_narrow, true},
  {"dlrs_planes", kernels::dlrs_planes, true},
  {"dlrs_pixels", kernels::dlrs_pixels, true},
};

enum : size_t { STACK = 64 << 10 };
struct Thread { ucontext_t context; unsigned index; bool done; };
thread_local std::vector<Thread> threads;
thread_local char *stacks;
thread_local ucontext_t scheduler;
thread_local Thread *current;
thread_local const Kernel *kernel;
thread_local const Args *argument;

void body() {
  kernel->run(*argument);
  current->done = true;
}

void start(Thread &thread, unsigned index) {
  thread.index = index, thread.done = false;
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = stacks + index * STACK;
  thread.context.uc_stack.ss_size = STACK;
  thread.context.uc_link = &scheduler;
  makecontext(&thread.context, body, 0);
}

// Runs all threads to their next barrier, until all are done, in an order that changes, so
// that a missing barrier shows.
bool run_block(unsigned turn) {
  unsigned count = blockDim.x;
  for (unsigned i = 0; i < count; ++i) start(threads[i], i);
  for (unsigned done = 0; done == 0; ++turn) {
    for (unsigned i = 0; i < count; ++i) {
      unsigned order = turn % 2 ? count - 1 - i : i;
      current = &threads[(order + turn * 37) % count];
      threadIdx.x = current->index;
      swapcontext(&scheduler, &current->context);
      done += current->done;
    }
    if (done != 0 && done != count) return false; // a barrier that not all threads reach
  }
  return true;
}
} // namespace

static void __syncthreads() { swapcontext(&current->context, &scheduler); }

// 0 if the kernel exists and its barriers are correct.
extern "C" int amd_launch(const char *name, unsigned blocks, const void *args) {
  kernel = nullptr;
  for (const Kernel &one : all)
    if (std::strcmp(one.name, name) == 0) kernel = &one;
  if (!kernel) return 1;
  Args copy;
  std::memcpy(&copy, args, sizeof copy);
  argument = &copy;
  gridDim = {blocks, 1, 1}, blockDim = {kernels::THREADS, 1, 1};
  if (threads.empty()) {
    threads.resize(kernels::THREADS);
    void *room = mmap(nullptr, kernels::THREADS * STACK, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) std::abort();
    stacks = (char *)room;
  }
  for (unsigned block = 0; block < blocks; ++block) {
    blockIdx = {block, 0, 0};
    if (kernel->syncs) {
      if (!run_block(block)) return 1;
    } else {
      for (unsigned i = 0; i < kernels::THREADS; ++i) threadIdx = {i, 0, 0}, kernel->run(copy);
    }
  }
  return 0;
}
