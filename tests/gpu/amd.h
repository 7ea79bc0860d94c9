// The definitions of hiprtc that kernels.cu needs, for a clang without ROCm: only to check that it
// compiles, and how many registers it uses. The library sets the size of a block.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
typedef unsigned uint4 __attribute__((ext_vector_type(4)));

#define INDEX(name, value) \
  struct name { \
    __declspec(property(get = get)) unsigned x; \
    __device__ unsigned get() const { return value; } \
  }
static const __device__ INDEX(Thread, __builtin_amdgcn_workitem_id_x()) threadIdx;
static const __device__ INDEX(Block, __builtin_amdgcn_workgroup_id_x()) blockIdx;
static const __device__ INDEX(Grid, __builtin_amdgcn_grid_size_x() / 256) gridDim;

static __device__ inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}

static __device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
