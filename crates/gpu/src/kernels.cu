// The device code of copies: one source for CUDA (NVRTC), ROCm (hiprtc) and, in tests of what is
// AMD's alone, a host compiler (c_tests/standin/launch.cpp). No headers, no warp primitives, no dependence on the
// wavefront size. launches.rs selects a kernel, kernels.rs fills in its argument.
//
//   dlrs_run           elements of 4 and 8 bytes, one per thread and iteration
//   dlrs_run_wide      elements of 16 bytes, one per thread and iteration
//   dlrs_run_narrow    elements of 1 and 2 bytes, one word per thread and iteration
//   dlrs_transpose     tiles through shared memory, 16 bytes per access where aligned
//   dlrs_tile          a large tile of wide elements per block, at any alignment
//   dlrs_tile_narrow   a large tile of elements of 1 and 2 bytes, by words
//   dlrs_planes        pixels of a few channels to planes, through shared memory,
//   dlrs_pixels        and planes to pixels
//   dlrs_bits          packed elements; a thread owns whole bytes of the destination
//
// An index is 32 bits wide (launches.rs splits larger plans), an offset 64.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// One digit of an index, the fastest first: its strides on both sides, and the division by its
// extent: q = (hi(i * magic) + i) >> shift, for i < 2^31.
struct Digit {
  i64 src, dst;
  u32 n, magic, shift, unused;
};

// The argument of every kernel; KernelArgs in kernels.rs. Each kernel documents its fields.
struct Args {
  const u8 *src;
  u8 *dst;
  i64 src_step, dst_step;
  u32 count, ndim;
  u32 n[2], lead[2], log[3], width[2], unused;
  u32 pick[4][3];
  Digit row, digit[25];
};
static_assert(sizeof(Args) == 960, "KernelArgs in kernels.rs has another size");

enum { THREADS = 256, WARP = 32, TURN = 4, TILES = 64 };
enum : u32 { ROOM = 16384 };

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

// The families of kernels to compile, one bit each as in kernels.rs; for ROCm one at a time.
#ifndef DLRS_KERNELS
#define DLRS_KERNELS 31
#endif

// Selects four of the eight bytes of two words, numbered 0 to 7, by the hexadecimal digits of
// `pick`, the lowest first.
__device__ __forceinline__ u32 bytes(u32 low, u32 high, u32 pick) {
#ifdef __AMDGCN__
  const u32 two = (pick | pick << 8) & 0x00ff00ff;
  return __builtin_amdgcn_perm(high, low, (two | two << 4) & 0x0f0f0f0f);
#else
  return __byte_perm(low, high, pick);
#endif
}

// Splits a digit off an index.
__device__ __forceinline__ u32 digit(const Digit &by, u32 &i) {
  u32 all = i;
  i = (__umulhi(all, by.magic) + all) >> by.shift;
  return all - i * by.n;
}

// Splits N indices at once into digits and sums their offsets; the last digit is the remaining
// quotient.
template <int N>
__device__ __forceinline__ void walk(const Args &a, u32 (&i)[N], u32 (&first)[N], i64 (&src)[N],
                                     i64 (&dst)[N]) {
  for (int k = 0; k < N; ++k) first[k] = src[k] = dst[k] = 0;
#pragma unroll 1
  for (u32 d = 0; d < a.ndim; ++d) {
    const Digit &by = a.digit[d];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      u32 at = d + 1 < a.ndim ? digit(by, i[k]) : i[k];
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

// Elements of 1 and 2 bytes: a thread combines those of one aligned word of the destination. The
// first digit counts words of a row of n[0] elements. In the source, groups of row.n elements are
// src_step apart; the groups begin dst_step apart, and the step to the next group is row.src more
// than src_step. Rows may begin anywhere in a word unless lead[0], the mask for it, is 0.
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

// Elements of 2^log[2] bytes. Those of 16 have a separate kernel, since they need more registers.
#if DLRS_KERNELS & 1
KERNEL dlrs_run(const Args a) {
  if (a.log[2] == 2) copy<u32>(a);
  else copy<u64>(a);
}

KERNEL dlrs_run_wide(const Args a) { copy<uint4>(a); }

KERNEL dlrs_run_narrow(const Args a) {
  if (a.log[2] == 0) copy_words<u8>(a);
  else copy_words<u16>(a);
}
#endif

// The offsets of a tile on both sides, and the valid bytes of its rows and columns.
struct Tile {
  i64 src, dst;
  u32 across, down;
};

// Loads 1, 2 or 4 bytes: 2^log.
__device__ __forceinline__ u32 get(const u8 *from, u32 log) {
  return log == 2 ? *(const u32 *)from : log == 1 ? *(const u16 *)from : *from;
}

__device__ __forceinline__ void put(u8 *to, u32 log, u32 value) {
  if (log == 2) *(u32 *)to = value;
  else if (log == 1) *(u16 *)to = (u16)value;
  else *to = (u8)value;
}

// The part of a tile for access number i, where a run has 2^run accesses.
struct Access {
  u32 byte, line, tile;
};

__device__ __forceinline__ Access access(u32 i, u32 log, u32 run, u32 lines) {
  return {(i & ((1u << run) - 1)) << log, i >> run & ((1u << lines) - 1), i >> (run + lines)};
}

// Loads the rows of all tiles to shared memory, 2^log bytes at a time; 16 where W is uint4. Chunks
// of 16 bytes are swizzled within 128 there, to avoid bank conflicts of rows and of columns.
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

// The offset in shared memory of a byte of a column, before the swizzle.
__device__ __forceinline__ u32 origin(const Args &a, const Access &it) {
  const u32 element = a.log[2];
  return (it.tile << (a.log[0] - element + a.log[1])) + (it.byte >> element << a.log[1]) +
         (it.line << element) + (it.byte & ((1u << element) - 1));
}

// Stores the columns of all tiles from shared memory, a W at a time, combined from pieces of type
// T; or, where W is u8, single pieces of 2^log bytes.
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
// 2^log[2] bytes, a column has 2^log[0] bytes and a row 2^log[1]. The first digit counts tiles
// down, along the destination's runs of n[0] bytes; the second tiles across, along the source's of
// n[1]. A block holds as many tiles as fit. Runs are multiples of 2^width[] bytes (source,
// destination), and aligned to that: 16, 4, 2 or 1.
#if DLRS_KERNELS & 2
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
#endif

// Copies a warp's part of LINES lines: every eighth line, LANES * 32 elements of each; a thread's
// are 32 apart in a line. Strides of lines and elements are in bytes. Unless WHOLE, `lines` and
// `elements` are the rest from a thread's first on. A batch of loads that fits into registers
// precedes its stores.
template <class T, int LINES, int LANES, bool WHOLE>
__device__ __forceinline__ void move(const u8 *from, i64 from_line, int from_next, u8 *to,
                                     i64 to_line, int to_next, i64 lines, i64 elements) {
  enum { ROWS = THREADS / WARP, MOST = (sizeof(T) < 8 ? 8 : 4) / LANES, ALL = LINES / ROWS };
  enum { BATCH = ALL < MOST ? ALL : MOST };
#pragma unroll 1
  for (int first = 0; first < LINES; first += BATCH * ROWS) {
    T value[BATCH][LANES];
#pragma unroll
    for (int r = 0; r < BATCH; ++r)
#pragma unroll
      for (int c = 0; c < LANES; ++c)
        if (WHOLE || (first + r * ROWS < lines && c * WARP < elements))
          value[r][c] = *(const T *)(from + (r * ROWS * from_line + c * WARP * from_next));
#pragma unroll
    for (int r = 0; r < BATCH; ++r)
#pragma unroll
      for (int c = 0; c < LANES; ++c)
        if (WHOLE || (first + r * ROWS < lines && c * WARP < elements))
          *(T *)(to + (r * ROWS * to_line + c * WARP * to_next)) = value[r][c];
    from += BATCH * ROWS * from_line, to += BATCH * ROWS * to_line;
  }
}

// Transposes tiles of N elements down and M across, for large matrices: all lanes are used. A warp
// copies a run of 32 elements, aligned or not. The first digit counts tiles down, along the
// destination's runs of n[0] elements; the second tiles across, along the source's of n[1].
// Consecutive tiles down share cache lines of the destination.
template <class T, int N, int M> __device__ __forceinline__ void tile(const Args &a, u64 *words) {
  enum { WIDE = sizeof(T), PITCH = M * WIDE + WIDE };
  const int x = threadIdx.x % WARP, y = threadIdx.x / WARP;
  u8 *in = (u8 *)words + (y * PITCH + x * WIDE), *out = (u8 *)words + (x * PITCH + y * WIDE);
  for (u32 base = blockIdx.x; base < a.count; base += gridDim.x) {
    u32 i = base, down = 0, across = 0;
    const u8 *src = a.src + (y * a.src_step + x * WIDE);
    u8 *dst = a.dst + (y * a.dst_step + x * WIDE);
    for (u32 d = 0; d < a.ndim; ++d) {
      u32 at = d + 1 < a.ndim ? digit(a.digit[d], i) : i;
      if (d == 0) down = at * N;
      if (d == 1) across = at * M;
      src += (i64)at * a.digit[d].src, dst += (i64)at * a.digit[d].dst;
    }
    // The rest of the runs.
    const i64 rows = (i64)a.n[0] - down, columns = (i64)a.n[1] - across;
    const bool whole = rows >= N && columns >= M;
    if (whole) move<T, N, M / WARP, true>(src, a.src_step, WIDE, in, PITCH, WIDE, 0, 0);
    else move<T, N, M / WARP, false>(src, a.src_step, WIDE, in, PITCH, WIDE, rows - y, columns - x);
    __syncthreads();
    if (whole) move<T, M, N / WARP, true>(out, WIDE, PITCH, dst, a.dst_step, WIDE, 0, 0);
    else move<T, M, N / WARP, false>(out, WIDE, PITCH, dst, a.dst_step, WIDE, columns - y, rows - x);
    __syncthreads();
  }
}

// Four bytes: pieces of 2^log bytes, `apart` bytes apart.
__device__ __forceinline__ u32 gather(const u8 *from, u32 apart, u32 log) {
  if (log == 0)
    return bytes(bytes(from[0], from[apart], 0x40), bytes(from[2 * apart], from[3 * apart], 0x40),
                 0x5410);
  if (log == 1) return bytes(*(const u16 *)from, *(const u16 *)(from + apart), 0x5410);
  return *(const u32 *)from;
}

__device__ __forceinline__ void scatter(u8 *to, u32 apart, u32 log, u32 value) {
  if (log > 1) {
    *(u32 *)to = value;
  } else if (log == 1) {
    *(u16 *)to = (u16)value;
    *(u16 *)(to + apart) = (u16)(value >> 16);
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e * apart] = (u8)(value >> 8 * e);
  }
}

// As `tile`, for elements of 2^log[2] bytes, 1 or 2, by words of 4 bytes on both sides. A row of a
// tile is ACROSS bytes, at any offset in the words of a WARP. Its offset in a word is the same in
// shared memory as in the source; therefore the pitch is src_step's modulo 4. A tile covers the
// words of a line of the destination that begin in its DOWN rows or up to three bytes before them,
// so it has up to three more rows.
enum { DOWN = 128, ACROSS = 124, LINES = DOWN + 3, PITCH = 132 };

__device__ __forceinline__ void tile_narrow(const Args &a, u8 *room) {
  enum { BATCH = 6, ROWS = THREADS / WARP };
  const u32 log = a.log[2], pitch = PITCH + ((u32)a.src_step & 3), t = threadIdx.x;
  const int more = (4 >> log) - 1, y = t / WARP;
  // The distance of neighbouring words of a line in shared memory leaves other banks for those of
  // 2^spread lines.
  const u32 odd = pitch >> log, spread = odd & 1 ? 0 : odd & 2 ? 1 : 2, run = 5 + log;
  const int word = (int)(t >> spread & ((1u << run) - 1)), columns = THREADS >> run;
  const int left = (int)(t >> (spread + run) << spread | (t & ((1u << spread) - 1)));
  for (u32 base = blockIdx.x; base < a.count; base += gridDim.x) {
    u32 i = base;
    int down = 0, across = 0;
    const u8 *src = a.src;
    u8 *dst = a.dst;
#pragma unroll 1
    for (u32 d = 0; d < a.ndim; ++d) {
      u32 at = d + 1 < a.ndim ? digit(a.digit[d], i) : i;
      if (d == 0) down = at * DOWN;
      if (d == 1) across = at * ACROSS;
      src += (i64)at * a.digit[d].src, dst += (i64)at * a.digit[d].dst;
    }
    // The rest of the runs, from the first row and the first byte of a row on.
    const int rows = (int)a.n[0] - down, end = (int)((a.n[1] << log) - across);
    src += (y - more) * a.src_step;
    dst += left * a.dst_step;
    const int lead = (int)(((u64)src - (u64)y * pitch) & 3);
    {
      // Every eighth row, at the same offset in a word: whole words, or single bytes at both ends.
      const int in = lead + y * (int)pitch, byte = 4 * (int)(t % WARP) - (in & 3);
      const int last = rows + more < DOWN + more ? rows + more : DOWN + more;
      const u8 *from = src + byte;
      u8 *to = room + (in + byte);
      int row = y;
      if (y - more + down < 0) row += ROWS, from += ROWS * a.src_step, to += ROWS * pitch;
      if (byte + across >= 0 && byte + 4 <= end) {
#pragma unroll 1
        for (; row < last; row += BATCH * ROWS) {
          u32 value[BATCH];
#pragma unroll
          for (int k = 0; k < BATCH; ++k, from += ROWS * a.src_step)
            if (row + k * ROWS < last) value[k] = *(const u32 *)from;
#pragma unroll
          for (int k = 0; k < BATCH; ++k, to += ROWS * pitch)
            if (row + k * ROWS < last) *(u32 *)to = value[k];
        }
      } else {
#pragma unroll 1
        for (; row < last; row += ROWS, from += ROWS * a.src_step, to += ROWS * pitch)
#pragma unroll 1
          for (int e = 0; e < 4; ++e)
            if (byte + e + across >= 0 && byte + e < end) to[e] = from[e];
      }
    }
    __syncthreads();
    {
      // A word of every fourth or eighth line, at the same offset in a word.
      const int byte = 4 * word - (int)((u64)dst & 3), row = byte >> log;
      const int last = (end < ACROSS ? end : ACROSS) >> log;
      const u8 *from = room + (lead + (row + more) * (int)pitch + (left << log));
      u8 *to = dst + byte;
      if (row + down >= 0 && row + more < rows) {
#pragma unroll 2
        for (int column = left; column < last; column += columns) {
          *(u32 *)to = gather(from, pitch, log);
          from += columns << log, to += columns * a.dst_step;
        }
      } else {
#pragma unroll 1
        for (int column = left; column < last; column += columns) {
#pragma unroll 1
          for (int e = 0; e <= more; ++e)
            if (row + e + down >= 0 && row + e < rows)
              put(to + (e << log), log, get(from + e * (int)pitch, log));
          from += columns << log, to += columns * a.dst_step;
        }
      }
    }
    __syncthreads();
  }
}

#if DLRS_KERNELS & 4
KERNEL dlrs_tile(const Args a) {
  __shared__ u64 words[64 * 33];
  if (a.log[2] == 2) tile<u32, 32, 32>(a, words);
  else tile<u64, 64, 32>(a, words);
}

KERNEL dlrs_tile_narrow(const Args a) {
  __shared__ u32 words[(LINES * (PITCH + 3) + WARP * 4) / 4];
  tile_narrow(a, (u8 *)words);
}
#endif

// Copies a dense run of n bytes to shared memory or back, 16 at a time except at its ends. `run`
// and `room` are multiples of 16; the bytes begin `lead` bytes behind them.
__device__ __forceinline__ void fetch(u8 *room, const u8 *run, u32 lead, u32 n) {
  uint4 value[TURN];
  bool whole[TURN];
#pragma unroll
  for (int k = 0; k < TURN; ++k) {
    u32 at = (threadIdx.x + k * THREADS) * 16;
    whole[k] = lead <= at && at + 16 <= n;
    if (whole[k]) value[k] = *(const uint4 *)(run + at);
  }
#pragma unroll
  for (int k = 0; k < TURN; ++k) {
    u32 at = (threadIdx.x + k * THREADS) * 16;
    if (whole[k]) *(uint4 *)(room + at) = value[k];
    else
#pragma unroll 1
      for (u32 i = at; i < at + 16 && i < n; ++i)
        if (lead <= i) room[i] = run[i];
  }
}

__device__ __forceinline__ void flush(u8 *run, const u8 *room, u32 lead, u32 n) {
#pragma unroll 1
  for (u32 at = threadIdx.x * 16; at < n; at += THREADS * 16) {
    if (lead <= at && at + 16 <= n) *(uint4 *)(run + at) = *(const uint4 *)(room + at);
    else
#pragma unroll 1
      for (u32 i = at; i < at + 16 && i < n; ++i)
        if (lead <= i) run[i] = room[i];
  }
}

// Pixels of n[1] channels of 2^log[2] bytes, interleaved on one side; on the other, each channel is
// a plane of n[0] elements, src_step apart. The first digit counts blocks of 2^log[0] pixels. The
// interleaved side is copied through shared memory unchanged, planes by words of 4 bytes. If a word
// of each of up to four planes makes whole words of pixels, pick[] selects per word the bytes of
// the other side's words: from the first two, from the others, and from both results.
struct Pixels {
  const u8 *src;
  u8 *dst;
  u32 lead, end;    // start and end of the interleaved bytes, from a multiple of 16
  int n;            // bytes of a plane in this block
  int words;        // words of every plane that pick[] makes
};

__device__ __forceinline__ Pixels block_of(const Args &a, u32 at, bool apart) {
  u32 i[1] = {at}, block[1];
  i64 src[1], dst[1];
  walk(a, i, block, src, dst);
  u32 left = a.n[0] - (block[0] << a.log[0]), most = 1u << a.log[0];
  u32 n = left < most ? left : most;
  const u8 *from = a.src + src[0];
  u8 *to = a.dst + dst[0];
  const u64 together = apart ? (u64)from : (u64)to, plane = apart ? (u64)to : (u64)from;
  const u32 lead = (u32)together & 15, bytes = n << a.log[2];
  const bool picked = a.pick[0][2] != 0 && (((u32)plane | (u32)a.src_step | lead) & 3) == 0;
  return {from, to, lead, lead + bytes * a.n[1], (int)bytes, picked ? (int)(bytes >> 2) : 0};
}

// Word number j, made of the words of the other side.
__device__ __forceinline__ u32 picked(const Args &a, const uint4 &word, int j) {
  return bytes(bytes(word.x, word.y, a.pick[j][0]), bytes(word.z, word.w, a.pick[j][1]),
               a.pick[j][2]);
}

// Pixels to planes.
__device__ __forceinline__ void planes(const Args &a, u8 *room) {
  const u32 log = a.log[2], channels = a.n[1], pitch = channels << log;
  for (u32 base = blockIdx.x; base < a.count; base += gridDim.x) {
    const Pixels it = block_of(a, base, true);
    fetch(room, it.src - it.lead, it.lead, it.end);
    __syncthreads();
    const u8 *from = room + it.lead;
    u8 *to = it.dst;
#pragma unroll 1
    for (int w = threadIdx.x; w < it.words; w += THREADS) {
      const u32 *words = (const u32 *)from + w * channels;
      uint4 word;
      if (channels == 4 && it.lead == 0) word = *(const uint4 *)words;
      else {
        word.x = words[0], word.y = words[1];
        word.z = channels > 2 ? words[2] : 0, word.w = channels > 3 ? words[3] : 0;
      }
      u8 *plane = to + 4 * w;
#pragma unroll
      for (int j = 0; j < 4; ++j, plane += a.src_step)
        if (j < (int)channels) *(u32 *)plane = picked(a, word, j);
    }
#pragma unroll 1
    for (u32 c = 0; c < channels; ++c, from += 1 << log, to += a.src_step) {
      const int before = (int)((u64)to & 3);
#pragma unroll 1
      for (int byte = 4 * (threadIdx.x + it.words) - before; byte < it.n; byte += 4 * THREADS) {
        const u8 *first = from + ((byte >> log) * (int)pitch + (byte & ((1 << log) - 1)));
        if (byte >= 0 && byte + 4 <= it.n) *(u32 *)(to + byte) = gather(first, pitch, log);
        else
#pragma unroll 1
          for (int e = 0; e < 4; e += 1 << log, first += pitch)
            if (0 <= byte + e && byte + e < it.n) put(to + (byte + e), log, get(first, log));
      }
    }
    __syncthreads();
  }
}

// Planes to pixels: loads, then as many stores.
__device__ __forceinline__ void pixels(const Args &a, u8 *room) {
  const u32 log = a.log[2], channels = a.n[1], pitch = channels << log;
  for (u32 base = blockIdx.x; base < a.count; base += gridDim.x) {
    const Pixels it = block_of(a, base, false);
    u8 *to = room + it.lead;
    const u8 *from = it.src;
#pragma unroll 2
    for (int w = threadIdx.x; w < it.words; w += THREADS) {
      const u8 *plane = from + 4 * w;
      uint4 word = {*(const u32 *)plane, *(const u32 *)(plane += a.src_step), 0, 0};
      if (channels > 2) word.z = *(const u32 *)(plane += a.src_step);
      if (channels > 3) word.w = *(const u32 *)(plane += a.src_step);
      u32 *words = (u32 *)to + w * channels;
      const uint4 made = {picked(a, word, 0), picked(a, word, 1), picked(a, word, 2),
                          picked(a, word, 3)};
      if (channels == 4 && it.lead == 0) {
        *(uint4 *)words = made;
      } else {
        words[0] = made.x, words[1] = made.y;
        if (channels > 2) words[2] = made.z;
        if (channels > 3) words[3] = made.w;
      }
    }
#pragma unroll 1
    for (u32 c = 0; c < channels; ++c, to += 1 << log, from += a.src_step) {
      const int before = (int)((u64)from & 3);
#pragma unroll 1
      for (int byte = 4 * (threadIdx.x + it.words) - before; byte < it.n;
           byte += TURN * 4 * THREADS) {
        u32 value[TURN];
#pragma unroll
        for (int k = 0; k < TURN; ++k) {
          const int at = byte + 4 * k * THREADS;
          if (at >= 0 && at + 4 <= it.n) value[k] = *(const u32 *)(from + at);
        }
#pragma unroll
        for (int k = 0; k < TURN; ++k) {
          const int at = byte + 4 * k * THREADS;
          u8 *first = to + ((at >> log) * (int)pitch + (at & ((1 << log) - 1)));
          if (at >= 0 && at + 4 <= it.n) scatter(first, pitch, log, value[k]);
          else
#pragma unroll 1
            for (int e = 0; e < 4; e += 1 << log, first += pitch)
              if (0 <= at + e && at + e < it.n) put(first, log, get(from + (at + e), log));
        }
      }
    }
    __syncthreads();
    flush(it.dst - it.lead, room, it.lead, it.end);
    __syncthreads();
  }
}

#if DLRS_KERNELS & 8
KERNEL dlrs_planes(const Args a) {
  __shared__ uint4 chunks[ROOM / 16];
  planes(a, (u8 *)chunks);
}

KERNEL dlrs_pixels(const Args a) {
  __shared__ uint4 chunks[ROOM / 16];
  pixels(a, (u8 *)chunks);
}
#endif

// Packed elements. The first digit counts the destination's bytes of a row of n[0] elements, n[1]
// bits apart and src_step bits apart in the source; width[] are the bits of an element and of its
// slot in the destination. lead[] is the bit of its first byte at which the source and a row of the
// destination start. Rows share no byte: one thread writes each byte.
#if DLRS_KERNELS & 16
KERNEL dlrs_bits(const Args a) {
  const int width = a.width[0], slot = a.width[1], stride = a.n[1];
  const u32 step = gridDim.x * THREADS;
  for (u32 at = blockIdx.x * THREADS + threadIdx.x; at < a.count; at += step) {
    u32 i[1] = {at}, byte[1];
    i64 src[1], dst[1];
    walk(a, i, byte, src, dst);
    const int low = (int)(8 * byte[0]) - (int)a.lead[1];
    int mask = 0, bits = 0;
    // The first element that ends beyond bit `low`.
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
#endif
