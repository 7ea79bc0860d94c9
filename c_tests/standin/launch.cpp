// Runs kernels.cu on the host: blocks in sequence, their threads as coroutines that switch at
// __syncthreads. Compiled with -fsanitize=undefined it detects a GPU's errors: a misaligned access,
// an overflow, a shift that is too large.
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __shared__ static // blocks run one after another
struct dim3 { unsigned x, y, z; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static dim3 gridDim, blockIdx, blockDim, threadIdx;
static void __syncthreads();
static unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
// Selects bytes of two words by number, 0 to 7: NVIDIA's function takes a digit for each, AMD's a
// byte, and the words in the other order.
static unsigned bytes_of(unsigned low, unsigned high, unsigned pick, int apart) {
  unsigned long long both = (unsigned long long)high << 32 | low;
  unsigned all = 0;
  for (int i = 0; i < 4; ++i) all |= (unsigned)(both >> 8 * (pick >> apart * i & 7) & 255) << 8 * i;
  return all;
}
#ifdef __AMDGCN__
static unsigned __builtin_amdgcn_perm(unsigned high, unsigned low, unsigned pick) {
  return bytes_of(low, high, pick, 8);
}
#else
static unsigned __byte_perm(unsigned low, unsigned high, unsigned pick) {
  return bytes_of(low, high, pick, 4);
}
#endif

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

// Stacks are far apart: valgrind treats close ones as a single one that grows and shrinks.
enum : size_t { STACK = 64 << 10, APART = 4 << 20 };
struct Thread { ucontext_t context; unsigned index; bool done; };
std::mutex one_launch;
std::vector<Thread> threads;
char *stacks;
ucontext_t scheduler;
Thread *current;
const Kernel *kernel;
const Args *argument;

void body() {
  kernel->run(*argument);
  current->done = true;
}

void start(Thread &thread, unsigned index) {
  thread.index = index, thread.done = false;
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = stacks + index * APART;
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

// Like cuLaunchKernel; 0 if the kernel exists, a GPU would accept the launch, and the kernel's
// barriers are correct. `args` points at pointers to the arguments.
extern "C" int standin_launch(const char *name, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                              unsigned by, unsigned bz, void **args) {
  const std::lock_guard<std::mutex> guard(one_launch);
  kernel = nullptr;
  for (const Kernel &one : all)
    if (std::strcmp(one.name, name) == 0) kernel = &one;
  if (!kernel || gx == 0 || gx > 0x7fffffff || gy != 1 || gz != 1) return 1;
  if (bx != kernels::THREADS || by != 1 || bz != 1) return 1;
  Args copy;
  std::memcpy(&copy, args[0], sizeof copy);
  argument = &copy;
  gridDim = {gx, 1, 1}, blockDim = {bx, 1, 1};
  if (threads.empty()) {
    threads.resize(kernels::THREADS);
    void *room = mmap(nullptr, kernels::THREADS * APART, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) std::abort();
    stacks = (char *)room;
  }
  for (unsigned block = 0; block < gx; ++block) {
    blockIdx = {block, 0, 0};
    if (kernel->syncs) {
      if (!run_block(block)) return 1;
    } else {
      for (unsigned i = 0; i < bx; ++i) threadIdx = {i, 0, 0}, kernel->run(copy);
    }
  }
  return 0;
}

// The number of argument bytes that the driver copies when the launch is enqueued.
extern "C" size_t standin_argument_size(const char *) { return sizeof(Args); }
