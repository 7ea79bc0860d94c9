/* Checks the emulator's AVX-512 instructions that the engine uses: each is compared with a plain
 * loop, on random values. `emulator ROUNDS`; ends with "N passed, N failed". */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef union line {
  __m512i v;
  uint8_t b[64];
  uint16_t w[32];
  uint32_t d[16];
  uint64_t q[8];
} line;

static int passed, failed;

static uint64_t any(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1du;
}

static void same(const char *what, const void *got, const void *wanted, size_t nbytes) {
  if (memcmp(got, wanted, nbytes) == 0) {
    ++passed;
  } else {
    ++failed;
    printf("failed: %s\n", what);
  }
}
#define SAME(what) same(what, &r, &e, sizeof r)

/* `n` elements of member m: r is the instruction's result, e[i] the loop's. */
#define EACH(what, m, n, made, element) \
  do { \
    r.v = made; \
    for (i = 0; i < (n); ++i) e.m[i] = (element); \
    SAME(what); \
  } while (0)

#define PERMUTE(bits, m, n) \
  EACH("permutexvar " #bits, m, n, _mm512_permutexvar_epi##bits(x.v, a.v), \
       a.m[x.m[i] & ((n) - 1)]); \
  EACH("permutex2var " #bits, m, n, _mm512_permutex2var_epi##bits(a.v, x.v, b.v), \
       (x.m[i] & (n) ? b.m : a.m)[x.m[i] & ((n) - 1)])

#define UNPACK(bits, m, n) /* n elements in each 16 bytes */ \
  EACH("unpacklo " #bits, m, 4 * (n), _mm512_unpacklo_epi##bits(a.v, b.v), \
       (i & 1 ? b.m : a.m)[i / (n) * (n) + i % (n) / 2]); \
  EACH("unpackhi " #bits, m, 4 * (n), _mm512_unpackhi_epi##bits(a.v, b.v), \
       (i & 1 ? b.m : a.m)[i / (n) * (n) + (n) / 2 + i % (n) / 2])

/* At any address; a store leaves all other bytes unchanged. */
#define MASKED(bits, m, n, type) \
  EACH("maskz_loadu " #bits, m, n, _mm512_maskz_loadu_epi##bits((type)k, memory + at), \
       k >> i & 1 ? from.m[i] : 0); \
  EACH("mask_loadu " #bits, m, n, _mm512_mask_loadu_epi##bits(a.v, (type)k, memory + at), \
       k >> i & 1 ? from.m[i] : a.m[i]); \
  memcpy(wanted, memory, sizeof memory); \
  _mm512_mask_storeu_epi##bits(memory + at, (type)k, b.v); \
  for (i = 0; i < (n); ++i) \
    if (k >> i & 1) memcpy(wanted + at + i * (bits) / 8, &b.m[i], (bits) / 8); \
  same("mask_storeu " #bits, memory, wanted, sizeof memory); \
  memcpy(&from, memory + at, sizeof from)

#define COMPARE(bits, m, n) \
  do { \
    uint64_t set = 0, less = 0, bit = 0; \
    for (i = 0; i < (n); ++i) { \
      set |= (uint64_t)(a.m[i] == c.m[i]) << i; \
      less |= (uint64_t)(a.m[i] < x.m[i]) << i; \
      bit |= (uint64_t)((a.m[i] & x.m[i]) != 0) << i; \
    } \
    same("cmpeq", &set, &(uint64_t){_mm512_cmpeq_epi##bits##_mask(a.v, c.v)}, 8); \
    same("cmplt", &less, &(uint64_t){_mm512_cmplt_epu##bits##_mask(a.v, x.v)}, 8); \
    same("test", &bit, &(uint64_t){_mm512_test_epi##bits##_mask(a.v, x.v)}, 8); \
  } while (0)

/* Two quarters of each, of 16 bytes, as `how` says. */
#define QUARTERS(bits, n, how) \
  EACH("shuffle of quarters", q, 8, _mm512_shuffle_i##bits##x##n(a.v, b.v, how), \
       (i < 4 ? a.q : b.q)[2 * ((how) >> i / 2 * 2 & 3) + i % 2])

__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) static void once(void) {
  line a, b, c, x, r, e, from;
  static uint8_t memory[192], wanted[192];
  static _Alignas(64) uint8_t streamed[64];
  const uint64_t k = any();
  const int at = (int)(any() % 128);
  int i;
  for (i = 0; i < 8; ++i) {
    a.q[i] = any();
    b.q[i] = any();
    x.q[i] = any();
    c.q[i] = any() & 1 ? a.q[i] : x.q[i];
  }
  for (i = 0; i < 192; ++i) memory[i] = (uint8_t)any();
  memcpy(&from, memory + at, sizeof from);
  PERMUTE(8, b, 64);
  PERMUTE(16, w, 32);
  PERMUTE(32, d, 16);
  PERMUTE(64, q, 8);
  UNPACK(8, b, 16);
  UNPACK(16, w, 8);
  UNPACK(32, d, 4);
  UNPACK(64, q, 2);
  MASKED(8, b, 64, __mmask64);
  MASKED(16, w, 32, __mmask32);
  MASKED(32, d, 16, __mmask16);
  MASKED(64, q, 8, __mmask8);
  COMPARE(8, b, 64);
  COMPARE(16, w, 32);
  COMPARE(32, d, 16);
  COMPARE(64, q, 8);
  QUARTERS(32, 4, 0x88);
  QUARTERS(64, 2, 0xdd);
  QUARTERS(64, 2, 0x44);
  QUARTERS(64, 2, 0xee);
  EACH("shuffle 8", b, 64, _mm512_shuffle_epi8(a.v, x.v),
       x.b[i] & 128 ? 0 : a.b[(i & 48) + (x.b[i] & 15)]);
  EACH("shuffle 32", d, 16, _mm512_shuffle_epi32(a.v, 0x4e), a.d[i ^ 2]);
  EACH("blend 8", b, 64, _mm512_mask_blend_epi8(k, a.v, b.v), k >> i & 1 ? b.b[i] : a.b[i]);
  EACH("ternarylogic", q, 8, _mm512_ternarylogic_epi64(a.v, b.v, x.v, 0xca),
       (a.q[i] & b.q[i]) | (~a.q[i] & x.q[i]));
  EACH("alignr 8", b, 64, _mm512_alignr_epi8(a.v, b.v, 5),
       (i & 15) < 11 ? b.b[i + 5] : a.b[i - 11]);
  EACH("insert 256", q, 8, _mm512_inserti64x4(a.v, _mm512_castsi512_si256(b.v), 1),
       i < 4 ? a.q[i] : b.q[i - 4]);
  EACH("insert 128", q, 8, _mm512_inserti32x4(a.v, _mm512_castsi512_si128(b.v), 2),
       i / 2 == 2 ? b.q[i % 2] : a.q[i]);
  EACH("extract 256", q, 8, _mm512_broadcast_i64x4(_mm512_extracti64x4_epi64(a.v, 1)),
       a.q[4 + i % 4]);
  EACH("extract 128", q, 8, _mm512_broadcast_i32x4(_mm512_extracti32x4_epi32(a.v, 3)),
       a.q[6 + i % 2]);
  EACH("broadcast 8", b, 64, _mm512_set1_epi8((char)a.b[0]), a.b[0]);
  EACH("add 8", b, 64, _mm512_add_epi8(a.v, b.v), (uint8_t)(a.b[i] + b.b[i]));
  EACH("srl 16", w, 32, _mm512_srli_epi16(a.v, 4), (uint16_t)(a.w[i] >> 4));
  _mm512_stream_si512((void *)streamed, x.v);
  same("stream", streamed, &x, sizeof streamed);
}

int main(int count, char **arguments) {
  int rounds = count > 1 ? atoi(arguments[1]) : 1;
  for (; rounds > 0 && failed < 20; --rounds) once();
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
