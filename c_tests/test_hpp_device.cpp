// Tests of dlpack_rs_device.hpp on a backend that counts. Ends with `N passed, N failed`.
#include "dlpack_rs_device.hpp"

#include <utility>

#include "hpp_check.h"

using namespace dlpack_rs;

constexpr DLDevice counted{kDLMAIA, 0};
static int streams, events, blocks;
static bool broken;  // the next call fails

static int32_t answer() {
  return std::exchange(broken, false) ? int32_t{DLRS_ASYNC_FAULT} : int32_t{DLRS_OK};
}
static int32_t count(void *, int32_t, int32_t *out, dlrs_fault *) {
  *out = 2;
  return DLRS_OK;
}
static int32_t alloc(void *, DLDevice, uint64_t nbytes, uint64_t align, void *, void **out,
                     dlrs_fault *) {
  alignas(4096) static unsigned char arena[1 << 16];
  static uint64_t used = 0;
  used = (used + align - 1) / align * align;
  *out = arena + used;
  used += nbytes;
  ++blocks;
  return DLRS_OK;
}
static int32_t give_back(void *, DLDevice, void *, uint64_t, uint64_t, void *, dlrs_fault *) {
  --blocks;
  return DLRS_OK;
}
static int32_t copy(void *, DLDevice, const dlrs_byte_plan *, void *, dlrs_fault *) {
  return DLRS_UNSUPPORTED;
}
template <int *N>
static int32_t create(void *, DLDevice, void **out, dlrs_fault *) {
  *out = N;
  ++*N;
  return DLRS_OK;
}
template <int *N>
static int32_t destroy(void *, DLDevice, void *, dlrs_fault *) {
  --*N;
  return answer();
}
static int32_t sync(void *, DLDevice, void *, dlrs_fault *) { return answer(); }
static int32_t query(void *, DLDevice, void *, int32_t *out, dlrs_fault *) {
  *out = 1;
  return DLRS_OK;
}
static int32_t between(void *, DLDevice, void *, void *, dlrs_fault *) { return answer(); }
static int32_t memory(void *, DLDevice, uint64_t *unused, uint64_t *total, dlrs_fault *) {
  *unused = 3;
  *total = 5;
  return DLRS_OK;
}
static int32_t where(void *, const void *data, DLDevice *device, void **base, uint64_t *nbytes,
                     dlrs_fault *) {
  *device = counted;
  *base = const_cast<void *>(data);
  *nbytes = 64;
  return DLRS_OK;
}

static int32_t reach = 1;
static int32_t access(void *, DLDevice, DLDevice, int32_t *out, dlrs_fault *) {
  *out = reach;
  return DLRS_OK;
}
static int32_t allow(void *, DLDevice, DLDevice, int32_t enabled, dlrs_fault *) {
  reach = 1 + enabled;
  return answer();
}

static void returning() {
  auto first = nothrow::Stream::make(counted), second = nothrow::Stream::make(counted);
  CHECK(first && second && streams == 2 && same(first->get().device, counted));
  CHECK(first->sync() && *first->query() && first->wait(*second));
  broken = true;
  CHECK(first->sync().error().status() == DLRS_ASYNC_FAULT);
  *first = std::move(*second);
  CHECK(streams == 1 && *first && first->get().handle == &streams && !*second);
  CHECK(second->destroy().error().status() == DLRS_NULL_ARG && streams == 1);
  broken = true;
  CHECK(!first->destroy() && streams == 0 && !*first);
  CHECK(nothrow::Stream::make(cpu()).error().status() == DLRS_UNSUPPORTED);

  auto event = nothrow::Event::make(counted);
  CHECK(event && events == 1 && event->get() == &events);
  CHECK(event->record(nullptr) && event->wait(nullptr) && event->sync() && *event->query());
  {
    nothrow::Event moved = std::move(*event);
    CHECK(moved && !*event && events == 1);
  }
  CHECK(events == 0);
  CHECK(nothrow::Event::make(counted)->destroy() && events == 0);

  auto block = nothrow::Memory::make(counted, 100);
  CHECK(block && *block && block->nbytes() == 100 && blocks == 1 && block->data());
  {
    nothrow::Memory moved = std::move(*block);
    CHECK(!*block && moved.data() && blocks == 1);
  }
  CHECK(blocks == 0 && nothrow::Memory::make(counted, 8)->free() && blocks == 0);
  CHECK(nothrow::Memory::make(counted, 8, 3).error().status() == DLRS_BAD_ARG);
  int host[4];
  CHECK(nothrow::Registration::make(kDLMAIA, host, 16).error().status() == DLRS_UNSUPPORTED);
  CHECK(nothrow::Registration::make(kDLMAIA, nullptr, 16).error().status() == DLRS_NULL_ARG);
  CHECK(!nothrow::Registration().end());

  CHECK(*nothrow::Devices::count(kDLMAIA) == 2 && !nothrow::Devices::count(999));
  CHECK(nothrow::Devices::mem_info(counted)->total_nbytes == 5);
  CHECK(same(nothrow::Devices::pointer_device(kDLMAIA, host)->device, counted));
  CHECK(nothrow::Devices::stream_sync({counted, nullptr}));
  CHECK(!nothrow::Devices::set_driver_path(kDLMAIA, nullptr));
  const auto stream = nothrow::Devices::stream_from_py(-1, cuda());
  CHECK(stream && !stream->sync);
  CHECK(nothrow::Devices::stream_from_py(2, cuda())->sync);
  CHECK(*nothrow::Devices::stream_to_py({cuda(), reinterpret_cast<void *>(2)}) == 2);
  CHECK(nothrow::Devices::stream_from_py(7, cpu()).error().status() == DLRS_STREAM);
  CHECK(*nothrow::Devices::peer_access(counted, {kDLMAIA, 1}) == 1);
  CHECK(nothrow::Devices::set_peer_access(counted, {kDLMAIA, 1}, true));
  CHECK(*nothrow::Devices::peer_access(counted, {kDLMAIA, 1}) == 2);
  broken = true;
  CHECK(!nothrow::Devices::set_peer_access(counted, {kDLMAIA, 1}, false));
  CHECK(*nothrow::Devices::peer_access(counted, cpu()) == 0);
  auto made = nothrow::Tensor::make<float>({4}, counted);
  CHECK(made->ready_sync() && made->ready_wait(counted, nullptr) && events == 0);
  CHECK(made->ready_record(nullptr) && made->ready_record(nullptr) && events == 1);
  CHECK(made->ready_wait(counted, nullptr) && made->ready_sync());
  broken = true;
  CHECK(made->ready_sync().error().status() == DLRS_ASYNC_FAULT);
  made->reset();
  CHECK(events == 0 && blocks == 0);
  CHECK(nothrow::Tensor().ready_sync().error().status() == DLRS_NULL_ARG);
  auto t = nothrow::Tensor::make<float>({4}, counted);
  CHECK(t && blocks == 1 && std::move(*t).release_after(counted, nullptr) && !*t);
  CHECK(*nothrow::Devices::release_drain() == 0 && blocks == 0);
}

// Whatever it had is freed at once, and the other is empty. A move to itself changes nothing.
template <class T>
static bool moves(T first, T second) {
  T &same = first;
  first = std::move(same);
  const bool kept = bool(first);
  first = std::move(second);
  return kept && first && !second;
}
static void moving() {
  const auto pool = [] { return std::move(*nothrow::Pool::make()); };
  const auto block = [] { return std::move(*nothrow::Memory::make(counted, 8)); };
  const auto event = [] { return std::move(*nothrow::Event::make(counted)); };
  const auto stream = [] { return std::move(*nothrow::Stream::make(counted)); };
  const auto tensor = [] { return std::move(*nothrow::Tensor::make<int>({2})); };
  const auto legacy = [&] { return std::move(*tensor().to_legacy()); };
  CHECK(moves(pool(), pool()) && moves(tensor(), tensor()) && moves(legacy(), legacy()));
  CHECK(moves(block(), block()) && moves(event(), event()) && moves(stream(), stream()));
  CHECK(blocks == 0 && events == 0 && streams == 0);
}

static void pools() {
  auto pool =
      nothrow::Pool::make(PoolOptions().with(&dlrs_pool_options::limit_nbytes, 1 << 20));
  CHECK(pool && *pool && pool->get());
  auto t = nothrow::Tensor::make<double>({10}, cpu(), pool->options());
  CHECK(t && pool->stats()->live_blocks == 1 && pool->stats()->limit_nbytes == 1 << 20);
  t->reset();
  CHECK(pool->stats()->live_blocks == 0 && pool->stats()->cached_blocks == 1);
  CHECK(pool->trim() && pool->stats()->cached_blocks == 0 && pool->set_limit(256));
  t = nothrow::Tensor::make<double>({1000}, cpu(), pool->options());
  CHECK(!t && t.error().status() == DLRS_NOMEM);
  const auto old = nothrow::Devices::set_allocator(kDLCPU, pool->allocator());
  CHECK(old && *old == nullptr && pool->set_limit(0));
  CHECK(nothrow::Tensor::make<double>({10}) && pool->stats()->misses > 1);
  CHECK(*nothrow::Devices::set_allocator(kDLCPU, *old) != nullptr);
  nothrow::Pool moved = std::move(*pool);
  CHECK(!*pool && moved && moved.stats()->live_blocks == 0);
  CHECK(pool->trim().error().status() == DLRS_NULL_ARG);
}

#if DLRS_CXX_EXCEPTIONS
static void throwing() {
  {
    Stream stream = Stream::make(counted);
    const StreamRef ref = stream;
    CHECK(stream.query() && streams == 1 && ref.handle == stream.get());
    Event event = Event::make(counted);
    event.record(stream.get());
    CHECK(event.query() && events == 1);
    Tensor t = Tensor::make<int8_t>({3}, counted);
    CopyOptions options;
    options.dst_stream = ref;
    CHECK(options.dst_stream == &streams && t.numel() == 3 && blocks == 1);
  }
  CHECK(streams == 0 && events == 0 && blocks == 0);
  dlrs_status status = DLRS_OK;
  try {
    static_cast<void>(Stream::make(cpu()));
  } catch (const Error &error) {
    status = error.status();
  }
  CHECK(status == DLRS_UNSUPPORTED);
}
#endif

int main() {
  dlrs_backend backend = Options<dlrs_backend>();
  backend.name = "counted";
  backend.device_count = count;
  backend.alloc = alloc;
  backend.free = give_back;
  backend.copy = copy;
  backend.stream_create = create<&streams>;
  backend.stream_destroy = destroy<&streams>;
  backend.stream_sync = sync;
  backend.stream_query = query;
  backend.event_create = create<&events>;
  backend.event_destroy = destroy<&events>;
  backend.event_record = between;
  backend.event_wait = between;
  backend.event_sync = sync;
  backend.event_query = query;
  backend.memory_info = memory;
  backend.pointer = where;
  backend.peer_access = access;
  backend.peer_access_set = allow;
  const auto set = nothrow::Devices::set_backend(kDLMAIA, &backend);
  CHECK(set && *set == nullptr);
  if (!set) std::puts(set.error().what());
  returning();
  moving();
  pools();
#if DLRS_CXX_EXCEPTIONS
  throwing();
#endif
  HPP_END("test_hpp_device");
}
