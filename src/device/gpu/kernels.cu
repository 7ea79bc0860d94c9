// The device's side of a copy: one source for CUDA (NVRTC), ROCm (hiprtc) and, in tests, a host
// compiler (c_tests/standin/launch.cpp). No headers, no warp primitives, nothing that depends on
// the width of a wavefront. launches.rs chooses a kernel, kernels.rs fills in its argument.
//
//   dlrs_copy<bytes>       one element, or one word of elements, per thread and turn
//   dlrs_transpose         tiles through shared memory, 16 bytes per access where aligned
//   dlrs_bits              packed elements; a thread owns whole bytes of the destination
//
// An index is 32 bits wide (kernels.rs cuts larger plans), an offset 64.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// One digit of an index, the fastest first: what it is worth on both sides, and how to divide by
// its extent: q = (hi(i * magic) + i) >> shift, for i < 2^31.
struct Digit {
  i64 src, dst;
  u32 n, magic, shift, unused;
};

// The argument of every kernel; KernelArgs in kernels.rs. What the fields mean is said there.
struct Args {
  const u8 *src;
  u8 *dst;
  i64 src_step, dst_step;
  u32 count, ndim;
  u32 n[2], lead[2], log[3], width[2], unused;
  Digit row, digit[8];
};
static_assert(sizeof(Args) == 368, "KernelArgs in kernels.rs has another size");

enum { THREADS = 256, TURN = 4, TILES = 64 };
enum : u32 { ROOM = 16384 };

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

// Takes a digit off an index.
__device__ __forceinline__ u32 digit(const Digit &by, u32 &i) {
  u32 all = i;
  i = (__umulhi(all, by.magic) + all) >> by.shift;
  return all - i * by.n;
}

// Splits N indices at once into digits and adds up what they are worth.
template <int N>
__device__ __forceinline__ void walk(const Args &a, u32 (&i)[N], u32 (&first)[N], i64 (&src)[N],
                                     i64 (&dst)[N]) {
  for (int k = 0; k < N; ++k) first[k] = src[k] = dst[k] = 0;
#pragma unroll 1
  for (u32 d = 0; d < a.ndim; ++d) {
    const Digit &by = a.digit[d];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      u32 at = digit(by, i[k]);
      if (d == 0) first[k] = at;
      src[k] += (i64)at * by.src;
      dst[k] += (i64)at * by.dst;
    }
  }
}

// Elements of 4, 8 and 16 bytes: TURN loads, then TURN stores.
template <class T> __device__ __forceinline__ void copy(const Args &a) {
  const u32 step = gridDim.x * THREADS;
  for (u32 at = blockIdx.x * THREADS + threadIdx.x; at < a.count; at += TURN * step) {
    u32 i[TURN], first[TURN];
    i64 src[TURN], dst[TURN];
    T value[TURN];
#pragma unroll
    for (int k = 0; k < TURN; ++k) i[k] = at + k * step;
    walk(a, i, first, src, dst);
#pragma unroll
    for (int k = 0; k < TURN; ++k)
      if (at + k * step < a.count) value[k] = *(const T *)(a.src + src[k]);
#pragma unroll
    for (int k = 0; k < TURN; ++k)
      if (at + k * step < a.count) *(T *)(a.dst + dst[k]) = value[k];
  }
}

// Elements of 1 and 2 bytes: a thread collects those of one aligned word of the destination. The
// first digit counts words of a row of n[0] elements. In the source, row.n of them are src_step
// apart, the first of each so many dst_step, and from the last to the next first it is row.src more
// than src_step. Rows may begin anywhere in a word unless lead[0], the mask for that, is 0.
template <class T> __device__ __forceinline__ void copy_words(const Args &a) {
  enum { K = 4 / sizeof(T) };
  const u32 step = gridDim.x * THREADS;
  for (u32 at = blockIdx.x * THREADS + threadIdx.x; at < a.count; at += 2 * step) {
    u32 i[2] = {at, at + step}, word[2];
    i64 src[2], dst[2];
    T value[2][K];
    int from[2], to[2];  // which elements of the word are in the row
    walk(a, i, word, src, dst);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      int before = (int)((((u64)a.dst + dst[k]) & a.lead[0]) / sizeof(T));
      int first = (int)(word[k] * K) - before, left = (int)a.n[0] - first;
      from[k] = first < 0 ? before : 0;
      to[k] = at + k * step >= a.count ? 0 : left < K ? left : K;
      dst[k] -= before * (i64)sizeof(T);
      u32 turns = first < 0 ? 0 : first;
      u32 place = digit(a.row, turns);
      i64 from_src = src[k] + (i64)place * a.src_step + (i64)turns * a.dst_step;
#pragma unroll
      for (int e = 0; e < K; ++e) {
        if (e < from[k] || e >= to[k]) continue;
        value[k][e] = *(const T *)(a.src + from_src);
        from_src += a.src_step;
        if (++place == a.row.n) place = 0, from_src += a.row.src;
      }
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      T *out = (T *)(a.dst + dst[k]);
      if (from[k] == 0 && to[k] == K) {
        u32 word = 0;
#pragma unroll
        for (int e = 0; e < K; ++e) word |= (u32)value[k][e] << 8 * sizeof(T) * e;
        *(u32 *)out = word;
      } else {
#pragma unroll
        for (int e = 0; e < K; ++e)
          if (from[k] <= e && e < to[k]) out[e] = value[k][e];
      }
    }
  }
}

KERNEL dlrs_copy1(const Args a) { copy_words<u8>(a); }
KERNEL dlrs_copy2(const Args a) { copy_words<u16>(a); }
KERNEL dlrs_copy4(const Args a) { copy<u32>(a); }
KERNEL dlrs_copy8(const Args a) { copy<u64>(a); }
KERNEL dlrs_copy16(const Args a) { copy<uint4>(a); }

// Where a tile begins on both sides, and how many bytes of its rows and of its columns exist.
struct Tile {
  i64 src, dst;
  u32 across, down;
};

// 1, 2 or 4 bytes: 2^log.
__device__ __forceinline__ u32 get(const u8 *from, u32 log) {
  return log == 2 ? *(const u32 *)from : log == 1 ? *(const u16 *)from : *from;
}

__device__ __forceinline__ void put(u8 *to, u32 log, u32 value) {
  if (log == 2) *(u32 *)to = value;
  else if (log == 1) *(u16 *)to = (u16)value;
  else *to = (u8)value;
}

// Which part of a tile the access number i is for, of those along runs of 2^run accesses.
struct Access {
  u32 byte, line, tile;
};

__device__ __forceinline__ Access access(u32 i, u32 log, u32 run, u32 lines) {
  return {(i & ((1u << run) - 1)) << log, i >> run & ((1u << lines) - 1), i >> (run + lines)};
}

// Rows of all tiles to shared memory, 2^log bytes at a time; 16 where W is uint4. There, chunks of
// 16 bytes trade places within 128, so that neither rows nor columns meet in the same banks.
template <int TURNS, class W>
__device__ __forceinline__ void load(const Args &a, const Tile *tiles, u8 *room, u32 log) {
  const u32 run = a.log[1] - log, lines = a.log[0] - a.log[2];
#pragma unroll 1
  for (u32 at = threadIdx.x; at < ROOM >> log; at += TURNS * THREADS) {
    W value[TURNS];
    bool exists[TURNS];
#pragma unroll
    for (int k = 0; k < TURNS; ++k) {
      Access it = access(at + k * THREADS, log, run, lines);
      const Tile &tile = tiles[it.tile];
      exists[k] = it.byte < tile.across && it.line << a.log[2] < tile.down;
      const u8 *from = a.src + (tile.src + it.line * a.src_step + it.byte);
      if (!exists[k]) continue;
      if constexpr (sizeof(W) == 16) value[k] = *(const W *)from;
      else value[k] = get(from, log);
    }
#pragma unroll
    for (int k = 0; k < TURNS; ++k) {
      u32 i = at + k * THREADS, row = i >> run & ((1u << lines) - 1);
      u8 *to = room + (i << log ^ (row << a.log[2] & 0x70));
      if (!exists[k]) continue;
      if constexpr (sizeof(W) == 16) *(W *)to = value[k];
      else put(to, log, value[k]);
    }
  }
}

// Where in shared memory what goes to a byte of a column is; the chunk's place is not in it yet.
__device__ __forceinline__ u32 origin(const Args &a, const Access &it) {
  const u32 element = a.log[2];
  return (it.tile << (a.log[0] - element + a.log[1])) + (it.byte >> element << a.log[1]) +
         (it.line << element) + (it.byte & ((1u << element) - 1));
}

// Columns of all tiles from shared memory, a W at a time, collected from pieces of type T; or, where
// W is u8, 2^log bytes at a time, which are one piece.
template <class T, class W>
__device__ __forceinline__ void store(const Args &a, const Tile *tiles, const u8 *room, u32 log) {
  enum { N = sizeof(W) / sizeof(T) };
  const u32 element = a.log[2], run = a.log[0] - log, lines = a.log[1] - element;
#pragma unroll 1
  for (u32 i = threadIdx.x; i < ROOM >> log; i += THREADS) {
    Access it = access(i, log, run, lines);
    const Tile &tile = tiles[it.tile];
    if (it.byte >= tile.down || it.line << element >= tile.across) continue;
    u8 *to = a.dst + (tile.dst + it.line * a.dst_step + it.byte);
    u32 from = origin(a, it), turn = it.byte & 0x70;
    if constexpr (N == 1) {
      put(to, log, get(room + (from ^ turn), log));
    } else {
      union {
        T piece[N];
        W whole;
      } value;
#pragma unroll
      for (u32 k = 0; k < N; ++k) {
        u32 row = sizeof(T) < 4 ? k : 4 * k >> element;
        u32 rest = sizeof(T) < 4 ? 0 : 4 * k & ((1u << element) - 1);
        value.piece[k] = *(const T *)(room + ((from + (row << a.log[1]) + rest) ^ turn));
      }
      *(W *)to = value.whole;
    }
  }
}

// Transposes tiles. Rows are runs of the source, columns runs of the destination; of elements of
// 2^log[2] bytes, a column has 2^log[0] bytes and a row 2^log[1]. The first digit counts tiles down,
// along the destination's runs of n[0] bytes; the second tiles across, along the source's of n[1].
// A block holds as many tiles as fit. Runs are multiples of 2^width[] bytes (source, destination),
// and aligned to them; these are 16, 4, 2 or 1.
KERNEL dlrs_transpose(const Args a) {
  __shared__ uint4 chunks[ROOM / 16];
  __shared__ Tile tiles[TILES];
  u8 *room = (u8 *)chunks;
  const u32 held = ROOM >> (a.log[0] + a.log[1] - a.log[2]), t = threadIdx.x;
  for (u32 base = blockIdx.x * held; base < a.count; base += gridDim.x * held) {
    if (t < held) {
      u32 i[1] = {base + t}, down[1], across = i[0];
      i64 src[1], dst[1];
      digit(a.digit[0], across);
      across = digit(a.digit[1], across);
      walk(a, i, down, src, dst);
      Tile tile = {src[0], dst[0], a.n[1] - (across << a.log[1]),
                   a.n[0] - (down[0] << a.log[0])};
      if (base + t >= a.count) tile.across = 0;
      tiles[t] = tile;
    }
    __syncthreads();
    if (a.width[0] == 4) load<4, uint4>(a, tiles, room, 4);
    else load<8, u32>(a, tiles, room, a.width[0]);
    __syncthreads();
    switch (a.log[2] << 4 | a.width[1]) {
      case 0x04: store<u8, uint4>(a, tiles, room, 4); break;
      case 0x02: store<u8, u32>(a, tiles, room, 2); break;
      case 0x14: store<u16, uint4>(a, tiles, room, 4); break;
      case 0x12: store<u16, u32>(a, tiles, room, 2); break;
      case 0x24: case 0x34: case 0x44: store<u32, uint4>(a, tiles, room, 4); break;
      default: store<u8, u8>(a, tiles, room, a.width[1]);
    }
    __syncthreads();
  }
}

// Packed elements. The first digit counts the destination's bytes of a row of n[0] elements,
// n[1] bits apart and src_step bits apart in the source; width[] are the bits of an element and
// those that belong to it in the destination. lead[] says at which bit of its first byte the source
// and a row of the destination start. Rows share no byte: a byte has one owner.
KERNEL dlrs_bits(const Args a) {
  const int width = a.width[0], slot = a.width[1], stride = a.n[1];
  const u32 step = gridDim.x * THREADS;
  for (u32 at = blockIdx.x * THREADS + threadIdx.x; at < a.count; at += step) {
    u32 i[1] = {at}, byte[1];
    i64 src[1], dst[1];
    walk(a, i, byte, src, dst);
    const int low = (int)(8 * byte[0]) - (int)a.lead[1];
    int mask = 0, bits = 0;
    // The first element that reaches beyond bit `low`.
    u32 j = low < slot ? 0 : (u32)(low - slot) / (u32)stride + 1;
    for (; j < a.n[0] && (int)j * stride < low + 8; ++j) {
      int to = (int)j * stride - low, first = 0;
      if (to < 0) first = -to, to = 0;
      int n = slot - first < 8 - to ? slot - first : 8 - to;
      mask |= ((1 << n) - 1) << to;
      if (first >= width) continue;
      n = n < width - first ? n : width - first;
      i64 bit = src[0] + a.lead[0] + (i64)j * a.src_step + first;
      const u8 *from = a.src + (bit >> 3);
      int shift = (int)(bit & 7), value = from[0] >> shift;
      if (shift + n > 8) value |= from[1] << (8 - shift);
      bits |= (value & ((1 << n) - 1)) << to;
    }
    u8 *out = a.dst + dst[0];
    if (mask == 255) *out = (u8)bits;
    else if (mask != 0) *out = (u8)((*out & ~mask) | bits);
  }
}
