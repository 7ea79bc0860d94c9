/* Batches of copies (dlrs_copy_batch) that fail at any pair: batch_faults cuda|rocm [ROW]
 *
 * *failed names the pair, or none; nothing leaks and nothing is left to run; the call succeeds next.
 * Where the driver refuses a batch, its pairs are copied one by one. */
#include "batch.h"

/* A batch of n that fails; nothing leaks, nothing is left to run, and it succeeds next. */
static void fails_at(int n, int async, const char *function, long k, int code, int32_t status, uint64_t index) {
  static char where[160];
  snprintf(where, sizeof where, "%d pairs, %s, call %ld of %s answers %d", n, async ? "enqueued" : "waits", k,
           function, code);
  t_context = where;
  dlrs_copy_options options = on_stream(streams[0][0], async);
  uint64_t failed = 77;
  make_batch(&sources[DEVICE_0], &targets[DEVICE_0], n, DENSE);
  all_run();
  gpu_state before = gpu_now();
  G.ctl(STANDIN_FAIL, k, code, function);
  FAILS(status, code, dlrs_copy_batch((uint64_t)n, B.src, B.dst, &options, &failed, ERR));
  G.ctl(STANDIN_FAIL, 0, 0, NULL);
  EQUAL(failed, index);
  EQUAL(gpu_now().stats.pending, 0);
  SAME(before);
  calls_of(n, DENSE, &options);
  SAME(before);
}

/* Two groups: the wait for the first one fails, for which no pair is at fault; nor is the next one. */
static void ends(void) {
  const char *const calls[] = {VENDOR("StreamSynchronize"), VENDOR("StreamWaitEvent"), VENDOR("EventRecord")};
  set_up();
  dlrs_copy_options first = on_stream(streams[0][0], 0);
  calls_of(2, DENSE, &first);
  for (int call = 0; call < 3; ++call) {
    for (int groups = 1; groups < 3; ++groups) {
      /* From device 0, whose backend's stream then makes the destination's wait. */
      dlrs_copy_options options = gpu_options(NULL, streams[0][0], call ? DLRS_COPY_ASYNC : 0);
      for (int i = 0; i < 6; ++i) {
        B.layouts[i] = layout_of(DENSE, i);
        B.src[i] = tensor_of(&sources[i < 3 || groups == 1 ? DEVICE_0 : PINNED], 0, i);
        B.dst[i] = tensor_of(&targets[DEVICE_0], 1, i);
      }
      all_run();
      uint64_t failed = 77;
      gpu_state before = gpu_now();
      G.ctl(STANDIN_FAIL, 1, 999, calls[call]);
      FAILS(DLRS_INTERNAL, 999, dlrs_copy_batch(6, B.src, B.dst, &options, &failed, ERR));
      G.ctl(STANDIN_FAIL, 0, 0, NULL);
      EQUAL(failed, call == 0 ? 6 : 0); /* the others order the first pair */
      all_run();
      SAME(before);
    }
  }
}

enum { INTERNAL = 999, FAULT = 719, LOST = 201, REFUSES = 1, LACKS = 801, TOO_LARGE = 701 };

static void failures(void) {
  set_up();
  dlrs_copy_options options = on_stream(streams[0][0], 0);
  calls_of(MOST, DENSE, &options);
  static const int sizes[] = {1, 2, 64, 65, MOST};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    int n = sizes[i];
    for (int async = 0; async < 2; ++async) {
      for (int at = 0; at < n; at += n < 3 ? 1 : 31) {
        fails_at(n, async, pointer(), 2 * at + 1, INTERNAL, DLRS_INTERNAL, (uint64_t)at);
        fails_at(n, async, pointer(), 2 * at + 2, INTERNAL, DLRS_INTERNAL, (uint64_t)at);
        if (G.hip || n == 1) fails_at(n, async, plain(), at + 1, INTERNAL, DLRS_INTERNAL, (uint64_t)at);
      }
      if (!async) {
        fails_at(n, 0, VENDOR("StreamSynchronize"), 1, INTERNAL, DLRS_INTERNAL, (uint64_t)n);
      }
      for (int at = 0; !G.hip && n > 1 && at < n; at += TOGETHER) {
        fails_at(n, async, "cuMemcpyBatchAsync", at / TOGETHER + 1, FAULT, DLRS_ASYNC_FAULT, (uint64_t)n);
        fails_at(n, async, "cuMemcpyBatchAsync", at / TOGETHER + 1, LOST, DLRS_CTX_LOST, (uint64_t)n);
      }
    }
  }
}

/* Where the driver refuses a batch, its copies are made one by one, and the one that fails is named. */
static void refusals(void) {
  static const int codes[] = {REFUSES, LACKS, 2, 400, INTERNAL};
  set_up();
  dlrs_copy_options options = on_stream(streams[0][0], 0);
  calls_of(MOST, MIXED, &options);
  for (int call = 1; call <= 4; ++call) {
    for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
      for (int kind = DENSE; kind < LAYOUTS; kind += MIXED) {
        gpu_state before = gpu_now();
        G.ctl(STANDIN_FAIL, call, codes[i], "cuMemcpyBatchAsync");
        calls_of(MOST, kind, &options);
        G.ctl(STANDIN_FAIL, 0, 0, NULL);
        long batches = by_batches(), refused = gpu_now().stats.injected - before.stats.injected;
        EQUAL(batches, kind == DENSE ? call : refused ? call : 2);
        if (kind == DENSE) EQUAL(G.calls("cuMemcpyAsync"), MOST - (call - 1) * TOGETHER);
        SAME(before);
      }
    }
  }
  /* The driver rejects the batch and then the pair itself. */
  memcpy(seen(targets[DEVICE_0].first), olds, NBYTES);
  make_batch(&sources[DEVICE_0], &targets[DEVICE_0], MOST, DENSE);
  uint64_t failed = 77;
  gpu_state before = gpu_now();
  void *beyond = seen(targets[DEVICE_0].first) != NULL ? targets[DEVICE_0].first + NBYTES - 8 : NULL;
  B.dst[130]->dl_tensor.data = beyond; /* past its end; the library cannot know */
  FAILS(DLRS_BAD_ARG, 1, dlrs_copy_batch(MOST, B.src, B.dst, &options, &failed, ERR));
  EQUAL(failed, 130);
  EQUAL(gpu_now().stats.pending, 0);
  SAME(before);
}

/* A pair that this backend then does not copy goes another way, after those gathered before it. */
static void launches(void) {
  static const int codes[] = {REFUSES, LACKS, TOO_LARGE};
  set_up();
  for (int async = 0; async < 2; ++async) {
    dlrs_copy_options options = on_stream(streams[0][0], async);
    calls_of(MOST, MIXED, &options);
    long all = G.calls(LAUNCH);
    CHECK(all > 20);
    for (long call = 1; call <= all; call += 5) {
      G.ctl(STANDIN_FAIL, call, codes[call % 3], LAUNCH);
      calls_of(MOST, MIXED, &options);
      G.ctl(STANDIN_FAIL, 0, 0, NULL);
    }
  }
}

/* Any call of the driver fails, once, in batches between all kinds of memory: where another way is
 * found, the destination has the elements. Only what was to be enqueued writes after the call. */
static void any_call(void) {
  enum { N = 11 }; /* the last one is strided */
  static char where[160];
  static unsigned char left[NBYTES];
  set_up();
  for (int point = 0; point < KINDS * KINDS * 2; ++point) {
    side *from = &sources[point / 2 % KINDS], *to = &targets[point / 2 / KINDS];
    int async = point % 2, failures = 0;
    void *reads = from == &sources[ON_CPU] ? NULL : streams[from->device][0];
    void *writes = to == &targets[ON_CPU] ? NULL : streams[to->device][1];
    dlrs_copy_options options = gpu_options(reads, writes, async ? DLRS_COPY_ASYNC : 0);
    if (from < &sources[MANAGED] && to < &targets[MANAGED]) continue;
    make_batch(from, to, N, MIXED);
    expect(N);
    WORKS(dlrs_copy_batch(N, B.src, B.dst, &options, NULL, ERR)); /* contexts, kernels, buffers */
    for (long call = 1;; ++call) {
      static const int codes[] = {INTERNAL, REFUSES, LACKS};
      snprintf(where, sizeof where, "kinds %d to %d, %s, call %ld fails", (int)(from - sources),
               (int)(to - targets), async ? "enqueued" : "waits", call);
      t_context = where;
      all_run();
      memcpy(seen(from->first), news, NBYTES);
      memcpy(seen(to->first), olds, NBYTES);
      gpu_state before = gpu_now();
      G.ctl(STANDIN_FAIL, call, codes[call % 3], NULL);
      int32_t status = dlrs_copy_batch(N, B.src, B.dst, &options, NULL, ERR);
      G.ctl(STANDIN_FAIL, 0, 0, NULL);
      long injected = gpu_now().stats.injected - before.stats.injected;
      if (async && writes != NULL) EQUAL(gpu_sync(to->device, writes), 0);
      if (status == DLRS_OK) CHECK(memcmp(seen(to->first), want, NBYTES) == 0);
      failures += status != DLRS_OK;
      memcpy(left, seen(to->first), NBYTES);
      all_run();
      if (!async || writes == NULL) CHECK(memcmp(seen(to->first), left, NBYTES) == 0);
      SAME(before);
      if (injected == 0) {
        EQUAL(status, DLRS_OK);
        break;
      }
    }
    CHECK(failures > 0);
  }
}

/* Pinned memory that was registered in part is rejected by the driver's copies, not by the library. */
static void registered(void) {
  static unsigned char host[2 * NBYTES] __attribute__((aligned(4096)));
  set_up();
  side from = sources[PINNED];
  from.first = host;
  memcpy(host, news, NBYTES);
  WORKS(dlrs_mem_register_host(G.type, host + 5, 4096, ERR)); /* ends inside a tensor */
  dlrs_copy_options options = on_stream(streams[0][0], 0);
  for (int i = 0; i < 2; ++i) {
    memcpy(seen(targets[DEVICE_0].first), olds, NBYTES);
    make_batch(&from, &targets[DEVICE_0], MOST, DENSE);
    expect(MOST);
    WORKS(dlrs_copy_batch(MOST, B.src, B.dst, &options, NULL, ERR));
    CHECK(memcmp(seen(targets[DEVICE_0].first), want, NBYTES) == 0);
  }
  WORKS(dlrs_mem_unregister_host(G.type, host + 5, ERR));
}

/* All checks come before the first byte, and before the driver is called. */
static void checked_first(void) {
  set_up();
  dlrs_copy_options options = on_stream(streams[0][0], 0);
  for (int at = 0; at < MOST; at += 33) {
    uint64_t failed = 77;
    memcpy(seen(targets[DEVICE_0].first), olds, NBYTES);
    make_batch(&sources[DEVICE_0], &targets[DEVICE_0], MOST, MIXED);
    B.layouts[at].shape[0] = ROWS;
    B.dst[at]->dl_tensor.dtype = t_dtype(kDLInt, 8, 1);
    long calls = gpu_now().stats.calls;
    FAILS(DLRS_DTYPE_MISMATCH, ANY, dlrs_copy_batch(MOST, B.src, B.dst, &options, &failed, ERR));
    EQUAL(failed, at);
    EQUAL(gpu_now().stats.calls, calls);
    all_run();
    CHECK(memcmp(seen(targets[DEVICE_0].first), olds, NBYTES) == 0);
  }
}

static const gpu_row rows[] = {
    {"failures", "a call fails at each pair", failures, STANDIN},
    {"ends", "the wait after a group fails", ends, STANDIN},
    {"refusals", "the driver refuses a batch", refusals, STANDIN | ON_CUDA},
    {"launches", "a pair that goes another way", launches, STANDIN},
    {"any call", "any call of the driver", any_call, STANDIN},
    {"registered", "memory registered in part", registered, STANDIN},
    {"checked first", "a pair that cannot be copied", checked_first, STANDIN},
};
GPU_MAIN(rows)
