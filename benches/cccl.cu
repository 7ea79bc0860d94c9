// CCCL's copy of a strided array on a device to a compact one, for benches/gpu.py:
//   nvcc -O3 -std=c++17 -arch=native -shared -Xcompiler -fPIC benches/cccl.cu -o libcccl.so
#include <cub/device/device_copy.cuh>

#include <cuda/std/array>
#include <cuda/std/mdspan>
#include <cuda/stream>

#include <cstdint>

namespace md = cuda::std;

template <class T, int RANK>
static int copy(const void *src, const int64_t *shape, const int64_t *strides, void *dst, cudaStream_t stream) {
  md::array<int64_t, RANK> extents, steps;
  for (int i = 0; i < RANK; ++i) {
    extents[i] = shape[i];
    steps[i] = strides[i];
  }
  using Extents = md::dextents<int64_t, RANK>;
  const md::mdspan<const T, Extents, md::layout_stride> from(
      static_cast<const T *>(src), md::layout_stride::mapping<Extents>(Extents(extents), steps));
  const md::mdspan<T, Extents, md::layout_right> to(static_cast<T *>(dst), Extents(extents));
  return static_cast<int>(cub::DeviceCopy::Copy(from, to, cuda::stream_ref(stream)));
}

template <class T>
static int of_rank(int rank, const void *src, const int64_t *shape, const int64_t *strides, void *dst,
                   cudaStream_t stream) {
  switch (rank) {
    case 1: return copy<T, 1>(src, shape, strides, dst, stream);
    case 2: return copy<T, 2>(src, shape, strides, dst, stream);
    case 3: return copy<T, 3>(src, shape, strides, dst, stream);
    case 4: return copy<T, 4>(src, shape, strides, dst, stream);
    case 5: return copy<T, 5>(src, shape, strides, dst, stream);
    default: return -1;
  }
}

// The code of CUDA's runtime, 0 for success; -1 for what is not compiled here. Strides in elements.
extern "C" int cccl_copy(int item_nbytes, int rank, const void *src, const int64_t *shape, const int64_t *strides,
                         void *dst, cudaStream_t stream) {
  switch (item_nbytes) {
    case 1: return of_rank<uint8_t>(rank, src, shape, strides, dst, stream);
    case 2: return of_rank<uint16_t>(rank, src, shape, strides, dst, stream);
    case 4: return of_rank<uint32_t>(rank, src, shape, strides, dst, stream);
    case 8: return of_rank<uint64_t>(rank, src, shape, strides, dst, stream);
    default: return -1;
  }
}
