/* Batches of copies (dlrs_copy_batch): calls of the driver, captures, pairs that go alone, records that
 * sides share; beside the matrix of order.c. batch cuda|rocm [ROW]. Failures: batch_faults.c. */
#include "batch.h"
#include "../random.h"

static const char *const kind_names[] = {"cpu", "pinned", "managed", "managed:1", "device", "device:1"};

/* ---- Calls of the driver --------------------------------------------------------------------*/

/* Calls for the pairs from the second on, of managed and of device memory, to the CPU. */
static long calls_down(int first, int n) {
  static const int from[] = {MANAGED, DEVICE_0, DEVICE_0, MANAGED, MANAGED};
  for (int i = 0; i < n; ++i) {
    B.layouts[i] = layout_of(DENSE, i);
    B.src[i] = tensor_of(&sources[from[first + i]], 0, i);
    B.dst[i] = tensor_of(&targets[ON_CPU], 1, i);
  }
  long before = gpu_now().stats.calls;
  WORKS(dlrs_copy_batch((uint64_t)n, B.src, B.dst, NULL, NULL, ERR));
  return gpu_now().stats.calls - before;
}

/* n pairs: what a call costs once, and per pair 2 addresses and a copy; or a copy per 64 pairs. */
static void cost(void) {
  static const int sizes[] = {1, 2, 63, 64, 65, MOST};
  set_up();
  int stream_calls = G.hip == 5 ? 1 : 2; /* what is current, and whose the stream is */
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    int n = sizes[i], groups = (n + TOGETHER - 1) / TOGETHER;
    for (int async = 0; async < 2; ++async) {
      for (int named = 0; named < 2; ++named) {
        dlrs_copy_options options = on_stream(named ? streams[0][0] : NULL, async);
        int checks = named && !G.hip && async, together = named && !G.hip && n > 1, enter = named ? stream_calls : 1;
        /* Capture checks: before the copies if they are waited for, or go together. Then the wait. */
        int once = enter + (async ? together : 1) + (async ? 0 : enter + 4);
        calls_of(n, DENSE, &options);
        EQUAL(calls_of(n, DENSE, &options), once + 2 * n + (together ? groups : n));
        EQUAL(by_batches(), together ? groups : 0);
        EQUAL(G.calls(plain()), together ? 0 : n);
        EQUAL(G.calls(VENDOR("StreamSynchronize")), !async);
        /* Strided ones: as many more as pairs that are added. */
        calls_of(2, STRIDED, &options);
        long two = calls_of(2, STRIDED, &options), three = calls_of(3, STRIDED, &options);
        EQUAL(calls_of(n, STRIDED, &options), n == 1 ? 2 * two - three - checks : two + (n - 2) * (three - two));
      }
    }
  }
  /* Pageable memory may be read after the call, managed memory needs a location: one by one. */
  for (int src = 0; src < KINDS; ++src) {
    for (int dst = 0; dst < DEVICE_1; ++dst) {
      if (src < MANAGED && dst < MANAGED) continue;
      void *named[2] = {src == ON_CPU ? NULL : streams[sources[src].device][0], dst == ON_CPU ? NULL : streams[targets[dst].device][0]};
      dlrs_copy_options options = gpu_options(named[0], named[1], DLRS_COPY_ASYNC);
      make_batch(&sources[src], &targets[dst], 3, DENSE);
      G.calls(NULL);
      WORKS(dlrs_copy_batch(3, B.src, B.dst, &options, NULL, ERR));
      int together = (src == PINNED && dst == DEVICE_0) || (src == DEVICE_0 && (dst == PINNED || dst == DEVICE_0));
      EQUAL(by_batches(), together && !G.hip);
      all_run();
    }
  }
  /* Groups of one kind: the CPU reads managed memory after one wait, the device copies its own. */
  if (!G.hip) {
    calls_down(0, 5);
    EQUAL(calls_down(0, 5), calls_down(0, 1) + calls_down(1, 2) + calls_down(3, 2) + 1);
    EQUAL(calls_down(3, 2), calls_down(3, 1) + 1); /* whose default stream it is */
  }
  /* Two streams: ordered once. */
  dlrs_copy_options two = gpu_options(streams[0][0], streams[0][1], 0);
  calls_of(64, DENSE, &two);
  EQUAL(G.calls(VENDOR("StreamWaitEvent")), 1);
  EQUAL(G.calls(VENDOR("StreamSynchronize")), 1);
}

/* The driver's batches are not used on the legacy stream, nor while the stream is captured. */
static void captured(void) {
  set_up();
  void *stream = streams[0][0];
  dlrs_copy_options async = on_stream(stream, 1), waits = on_stream(stream, 0), legacy = on_stream((void *)1, 0);
  side *from = &sources[DEVICE_0], *to = &targets[DEVICE_0];
  calls_of(MOST, MIXED, &waits); /* loads the kernels */
  memcpy(seen(to->first), olds, NBYTES);
  gpu_state before = gpu_now();
  gpu_capture(0, stream, 0);
  make_batch(from, to, MOST, MIXED);
  G.calls(NULL);
  WORKS(dlrs_copy_batch(MOST, B.src, B.dst, &async, NULL, ERR));
  EQUAL(by_batches(), 0);
  uint64_t failed = 77;
  FAILS(DLRS_CAPTURING, ANY, dlrs_copy_batch(MOST, B.src, B.dst, &waits, &failed, ERR));
  CHECK(memcmp(seen(to->first), olds, NBYTES) == 0);
  EQUAL(gpu_now().stats.captures_broken, before.stats.captures_broken);
  EQUAL(gpu_capture_end(0, stream, 1), 0);
  CHECK(memcmp(seen(to->first), want, NBYTES) == 0);
  SAME(before);
  if (G.hip == 5) return;
  calls_of(MOST, DENSE, &legacy);
  EQUAL(by_batches(), 0);
}

/* ---- Pairs that go alone --------------------------------------------------------------------*/

/* One batch of everything: between all kinds of memory, pairs that share memory, packed elements of
 * 4 bits, which CUDA's and HIP's backends do not copy from pageable memory. */
static void among_others(void) {
  set_up();
  for (int async = 0; async < 2; ++async) {
    for (int shift = 0; shift < 5; ++shift) {
      dlrs_copy_options options = gpu_options(NULL, NULL, (async ? DLRS_COPY_ASYNC : 0) | DLRS_COPY_ALLOW_OVERLAP);
      int from[MOST], to[MOST];
      for (int kind = 0; kind < KINDS; ++kind) {
        memcpy(seen(sources[kind].first), kind < MANAGED ? news : olds, NBYTES);
        memcpy(seen(targets[kind].first), olds, NBYTES);
        if (kind >= MANAGED) gpu_copy(sources[kind].device, NULL, sources[kind].first, news, NBYTES);
      }
      for (int i = 0; i < MOST; ++i) {
        /* Runs of a kind, of different lengths. */
        from[i] = (i / (2 + shift)) % KINDS;
        to[i] = (i / (3 + shift)) % KINDS;
        B.layouts[i] = layout_of(MIXED, i);
        B.src[i] = tensor_of(&sources[from[i]], 0, i);
        B.dst[i] = tensor_of(&targets[to[i]], 1, i);
        if (i % 10 == 4) { /* within the target's block, 1 byte on */
          B.layouts[i].dst_at = 4;
          B.layouts[i].src_at = 3;
          for (int axis = 0; axis < 2; ++axis) B.layouts[i].src[axis] = B.layouts[i].dst[axis] = axis ? 1 : COLUMNS;
          B.src[i] = tensor_of(&targets[to[i]], 0, i);
          B.dst[i] = tensor_of(&targets[to[i]], 1, i);
          from[i] = -1;
        } else if (i % 10 == 7) { /* each second element of 4 bits */
          B.layouts[i].shape[0] = 1, B.layouts[i].shape[1] = 9;
          B.layouts[i].src[1] = 2, B.layouts[i].dst[1] = 1;
          B.layouts[i].src_at = B.layouts[i].dst_at = 0;
          B.given[0][i] = *tensor_of(&sources[from[i]], 0, i);
          tensor_of(&targets[to[i]], 1, i);
          for (int k = 0; k < 2; ++k) B.given[k][i].dl_tensor.dtype = t_dtype(kDLFloat4_e2m1fn, 4, 1);
        }
      }
      uint64_t failed = 77;
      WORKS(dlrs_copy_batch(MOST, B.src, B.dst, &options, &failed, ERR));
      if (async) all_run();
      else EQUAL(gpu_now().stats.pending, 0);
      for (int i = 0; i < MOST; ++i) {
        unsigned char block[PITCH];
        const unsigned char *source = news + i * PITCH;
        const layout *it = &B.layouts[i];
        memcpy(block, olds + i * PITCH, PITCH);
        if (i % 10 == 4) {
          for (int64_t k = 0; k < it->shape[0] * COLUMNS; ++k) block[4 + k] = olds[i * PITCH + 3 + k];
        } else if (i % 10 == 7) {
          for (int k = 0; k < 9; ++k) {
            int value = source[k] & 15, up = k % 2 * 4; /* element 2k: the low half of byte k */
            block[k / 2] = (unsigned char)((block[k / 2] & ~(15 << up)) | value << up);
          }
        } else {
          for (int64_t row = 0; row < it->shape[0]; ++row) {
            for (int64_t column = 0; column < it->shape[1]; ++column) {
              block[it->dst_at + row * it->dst[0] + column * it->dst[1]] =
                  source[it->src_at + row * it->src[0] + column * it->src[1]];
            }
          }
        }
        if (!CHECK(memcmp(seen(targets[to[i]].first) + i * PITCH, block, PITCH) == 0)) {
          printf("pair %d, %s -> %s\n", i, from[i] < 0 ? "itself" : kind_names[from[i]], kind_names[to[i]]);
        }
      }
    }
  }
}

/* ---- Records that sides share ---------------------------------------------------------------*/

/* Random pairs within and between two recorded tensors and memory of which nothing is known: what is
 * recorded for a tensor comes after each pair that writes it, in whichever order they come. */
static void records(void) {
  enum { PLACES = 3, UNKNOWN = 2 };
  static unsigned char expected[PLACES][NBYTES];
  static side from[PLACES], to[PLACES];
  const int64_t nbytes = NBYTES, one = 1;
  set_up();
  for (int k = 0; k < PLACES; ++k) from[k].first = (unsigned char *)gpu_alloc(0, 2 * NBYTES);
  for (int round = 0; round < 200; ++round) {
    DLManagedTensorVersioned *whole[PLACES] = {NULL};
    G.ctl(STANDIN_SEED, round % 2 ? round : 0, 0, NULL); /* 0: only what is waited for */
    for (int k = 0; k < PLACES; ++k) {
      from[k].on = to[k].on = DEV(0);
      to[k].first = from[k].first + NBYTES;
      memcpy(seen(from[k].first), k == UNKNOWN ? news : olds, NBYTES);
      memcpy(seen(to[k].first), olds, NBYTES);
      memcpy(expected[k], olds, NBYTES);
      if (k == UNKNOWN) continue;
      gpu_copy(0, makers[0][k], from[k].first, news, NBYTES);
      whole[k] = wrap(&from[k], from[k].first, 2 * NBYTES);
      WORKS(dlrs_ready_record(whole[k], makers[0][k], ERR));
      WORKS(dlrs_view_as_strided(whole[k], &nbytes, &one, 1, 0, &from[k].own, ERR));
      WORKS(dlrs_view_as_strided(whole[k], &nbytes, &one, 1, NBYTES, &to[k].own, ERR));
    }
    int n = 2 + (int)below(30), use = (int)below(3);
    for (int i = 0; i < n; ++i) {
      int src = (int)below(PLACES), dst = (int)below(PLACES);
      B.layouts[i] = layout_of(MIXED, i);
      B.src[i] = tensor_of(&from[src], 0, i);
      B.dst[i] = tensor_of(&to[dst], 1, i);
      write_pair(expected[dst], i);
    }
    dlrs_copy_options options = gpu_options(use ? streams[0][0] : NULL, use ? streams[0][use - 1] : NULL, DLRS_COPY_ASYNC);
    WORKS(dlrs_copy_batch((uint64_t)n, B.src, B.dst, &options, NULL, ERR));
    for (int k = 0; k < UNKNOWN; ++k) {
      WORKS(dlrs_ready_sync(whole[k], ERR));
      CHECK(memcmp(seen(to[k].first), expected[k], NBYTES) == 0);
    }
    all_run();
    for (int k = 0; k < PLACES; ++k) CHECK(memcmp(seen(to[k].first), expected[k], NBYTES) == 0);
    for (int i = 0; i < n; ++i) {
      dlrs_release(B.views[0][i]);
      dlrs_release(B.views[1][i]);
    }
    for (int k = 0; k < PLACES; ++k) {
      dlrs_release(from[k].own);
      dlrs_release(to[k].own);
      dlrs_release(whole[k]);
    }
  }
}

static const gpu_row rows[] = {
    {"cost", "calls of the driver per batch", cost, STANDIN},
    {"captured", "captures, and the legacy stream", captured, STANDIN},
    {"records", "sides that share a record", records, STANDIN},
    {"among others", "pairs that go alone", among_others, STANDIN},
};
GPU_MAIN(rows)
