/*!
 * \file dlpack_rs_device.hpp
 * \brief Streams, events, pools, device memory and backends for dlpack_rs_core.hpp.
 *
 * Classes own their handle, are move-only, and are empty after being moved from. A destructor
 * does not report the driver's error; call destroy() for it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_DEVICE_HPP_
#define DLPACK_RS_DEVICE_HPP_

#include "dlpack_rs_core.hpp"

namespace dlpack_rs {

using PoolOptions = Options<dlrs_pool_options>;

/// Somebody's stream: a device and a handle of its API, NULL for the default stream. Converts to
/// the void * of options and functions.
struct StreamRef {
  DLDevice device = cpu();
  void *handle = nullptr;
  constexpr operator void *() const noexcept { return handle; }
};

/// A stream that is destroyed with this object. Tensors may outlive it, work on it may not: sync().
template <class M>
class BasicStream {
 public:
  template <class T>
  using R = ResultOf<M, T>;

  /// A stream that does not wait for the default stream.
  static R<BasicStream> make(DLDevice device) {
    return detail::get<M, BasicStream>([&](BasicStream *out, dlrs_error *e) {
      const dlrs_status status = dlrs_stream_create(device, &out->ref_.handle, e);
      if (status == DLRS_OK) out->own(device);
      return status;
    });
  }
  BasicStream() noexcept = default;
  BasicStream(BasicStream &&other) noexcept { swap(other); }
  BasicStream &operator=(BasicStream &&other) noexcept {
    BasicStream(std::move(other)).swap(*this);
    return *this;
  }
  ~BasicStream() {
    if (owned_) static_cast<void>(dlrs_stream_destroy(ref_.device, ref_.handle, nullptr));
  }
  explicit operator bool() const noexcept { return owned_; }
  [[nodiscard]] StreamRef get() const noexcept { return ref_; }
  [[nodiscard]] operator StreamRef() const noexcept { return ref_; }
  /// Waits until all work given to the stream is done.
  R<void> sync() const { return detail::run<M>(dlrs_stream_sync, ref_.device, ref_.handle); }
  /// Whether all work given to the stream is done.
  R<bool> query() const {
    return detail::get<M, bool, int32_t>(dlrs_stream_query, ref_.device, ref_.handle);
  }
  /// Later work here waits for what another stream was given until now.
  R<void> wait(StreamRef producer) const {
    return detail::run<M>(dlrs_stream_wait, ref_.device, ref_.handle, producer.handle);
  }
  /// Destroys it now. On failure it is left alone, and not tried again.
  R<void> destroy() {
    owned_ = false;
    return detail::run<M>(dlrs_stream_destroy, ref_.device, std::exchange(ref_.handle, nullptr));
  }

 private:
  void swap(BasicStream &other) noexcept {
    std::swap(ref_, other.ref_);
    std::swap(owned_, other.owned_);
  }
  void own(DLDevice device) noexcept {
    ref_.device = device;
    owned_ = true;
  }
  StreamRef ref_;
  bool owned_ = false;  // a handle may be NULL
};

/// An event that is destroyed with this object.
template <class M>
class BasicEvent {
 public:
  template <class T>
  using R = ResultOf<M, T>;

  static R<BasicEvent> make(DLDevice device) {
    return detail::get<M, BasicEvent>([&](BasicEvent *out, dlrs_error *e) {
      const dlrs_status status = dlrs_event_create(device, &out->handle_, e);
      out->device_ = device;
      out->owned_ = status == DLRS_OK;
      return status;
    });
  }
  BasicEvent() noexcept = default;
  BasicEvent(BasicEvent &&other) noexcept { swap(other); }
  BasicEvent &operator=(BasicEvent &&other) noexcept {
    BasicEvent(std::move(other)).swap(*this);
    return *this;
  }
  ~BasicEvent() {
    if (owned_) static_cast<void>(dlrs_event_destroy(device_, handle_, nullptr));
  }
  explicit operator bool() const noexcept { return owned_; }
  [[nodiscard]] void *get() const noexcept { return handle_; }
  /// Marks where a stream is now.
  R<void> record(void *stream) const {
    return detail::run<M>(dlrs_event_record, device_, handle_, stream);
  }
  /// Later work of a stream waits for the mark.
  R<void> wait(void *stream) const {
    return detail::run<M>(dlrs_event_wait, device_, handle_, stream);
  }
  /// This thread waits for the mark.
  R<void> sync() const { return detail::run<M>(dlrs_event_sync, device_, handle_); }
  /// Whether the event has completed.
  R<bool> query() const {
    return detail::get<M, bool, int32_t>(dlrs_event_query, device_, handle_);
  }
  /// Destroys it now. On failure it is left alone, and not tried again.
  R<void> destroy() {
    owned_ = false;
    return detail::run<M>(dlrs_event_destroy, device_, std::exchange(handle_, nullptr));
  }

 private:
  void swap(BasicEvent &other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    std::swap(owned_, other.owned_);
  }
  DLDevice device_ = cpu();
  void *handle_ = nullptr;
  bool owned_ = false;
};

/// An allocator of one device that caches freed blocks. Its tensors may outlive it.
template <class M>
class BasicPool {
 public:
  template <class T>
  using R = ResultOf<M, T>;

  static R<BasicPool> make(OptionsRef<dlrs_pool_options> options = {}) {
    return detail::get<M, BasicPool>([&](BasicPool *out, dlrs_error *e) {
      return dlrs_pool_create(options, &out->pool_, e);
    });
  }
  BasicPool() noexcept = default;
  BasicPool(BasicPool &&other) noexcept { swap(other); }
  BasicPool &operator=(BasicPool &&other) noexcept {
    BasicPool(std::move(other)).swap(*this);
    return *this;
  }
  ~BasicPool() { dlrs_pool_release(pool_); }
  explicit operator bool() const noexcept { return pool_ != nullptr; }
  [[nodiscard]] dlrs_pool *get() const noexcept { return pool_; }
  [[nodiscard]] const dlrs_allocator *allocator() const noexcept {
    return dlrs_pool_allocator(pool_);
  }
  /// Tensor::make<float>({1000}, cpu(), pool.options())
  [[nodiscard]] AllocOptions options() const noexcept {
    return AllocOptions().with(&dlrs_alloc_options::allocator, allocator());
  }
  /// Frees what is kept for reuse, down to a number of bytes.
  R<void> trim(uint64_t keep_nbytes = 0) {
    return detail::run<M>(dlrs_pool_trim, pool_, keep_nbytes);
  }
  /// 0 is no limit.
  R<void> set_limit(uint64_t limit_nbytes) {
    return detail::run<M>(dlrs_pool_set_limit, pool_, limit_nbytes);
  }
  R<dlrs_pool_statistics> stats() const {
    return detail::get<M, dlrs_pool_statistics>([&](dlrs_pool_statistics *out, dlrs_error *e) {
      *out = Options<dlrs_pool_statistics>();
      return dlrs_pool_stats(pool_, out, e);
    });
  }

 private:
  void swap(BasicPool &other) noexcept { std::swap(pool_, other.pool_); }
  dlrs_pool *pool_ = nullptr;
};

/// Memory of a device, without a shape.
template <class M>
class BasicMemory {
 public:
  template <class T>
  using R = ResultOf<M, T>;

  /// align_bytes 0 is 256; a stream is where the memory is used first.
  static R<BasicMemory> make(DLDevice device, uint64_t nbytes, uint64_t align_bytes = 0,
                             void *stream = nullptr) {
    return detail::get<M, BasicMemory>([&](BasicMemory *out, dlrs_error *e) {
      out->device_ = device;
      out->nbytes_ = nbytes;
      out->align_bytes_ = align_bytes;
      return dlrs_mem_alloc(device, nbytes, align_bytes, stream, &out->data_, e);
    });
  }
  BasicMemory() noexcept = default;
  BasicMemory(BasicMemory &&other) noexcept { swap(other); }
  BasicMemory &operator=(BasicMemory &&other) noexcept {
    BasicMemory(std::move(other)).swap(*this);
    return *this;
  }
  ~BasicMemory() {
    if (data_)
      static_cast<void>(dlrs_mem_free(device_, data_, nbytes_, align_bytes_, nullptr, nullptr));
  }
  explicit operator bool() const noexcept { return data_ != nullptr; }
  [[nodiscard]] void *data() const noexcept { return data_; }
  [[nodiscard]] uint64_t nbytes() const noexcept { return nbytes_; }
  [[nodiscard]] DLDevice device() const noexcept { return device_; }
  /// Frees it after the work on a stream so far. On failure it is leaked, without a retry.
  R<void> free(void *stream = nullptr) {
    return detail::run<M>(dlrs_mem_free, device_, std::exchange(data_, nullptr), nbytes_,
                          align_bytes_, stream);
  }

 private:
  void swap(BasicMemory &other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(nbytes_, other.nbytes_);
    std::swap(align_bytes_, other.align_bytes_);
  }
  DLDevice device_ = cpu();
  void *data_ = nullptr;
  uint64_t nbytes_ = 0, align_bytes_ = 0;
};

/// Host memory registered with a driver, for faster and asynchronous copies.
template <class M>
class BasicRegistration {
 public:
  template <class T>
  using R = ResultOf<M, T>;

  static R<BasicRegistration> make(int32_t device_type, void *data, uint64_t nbytes) {
    return detail::get<M, BasicRegistration>([&](BasicRegistration *out, dlrs_error *e) {
      const dlrs_status status = dlrs_mem_register_host(device_type, data, nbytes, e);
      out->device_type_ = device_type;
      if (status == DLRS_OK) out->data_ = data;
      return status;
    });
  }
  BasicRegistration() noexcept = default;
  BasicRegistration(BasicRegistration &&other) noexcept { swap(other); }
  BasicRegistration &operator=(BasicRegistration &&other) noexcept {
    BasicRegistration(std::move(other)).swap(*this);
    return *this;
  }
  ~BasicRegistration() {
    if (data_) static_cast<void>(dlrs_mem_unregister_host(device_type_, data_, nullptr));
  }
  explicit operator bool() const noexcept { return data_ != nullptr; }
  /// Ends it now. On failure it is left alone, and not tried again.
  R<void> end() {
    return detail::run<M>(dlrs_mem_unregister_host, device_type_, std::exchange(data_, nullptr));
  }

 private:
  void swap(BasicRegistration &other) noexcept {
    std::swap(device_type_, other.device_type_);
    std::swap(data_, other.data_);
  }
  int32_t device_type_ = kDLCPU;
  void *data_ = nullptr;
};

/// The memory of a device in bytes.
struct MemoryInfo {
  uint64_t free_nbytes, total_nbytes;
};
/// What the `stream` argument of `__dlpack__` means.
struct PyStream {
  void *handle;
  /// False for -1, which requests no synchronization.
  bool sync;
};

/// Queries of devices, and process-wide settings.
template <class M>
struct BasicDevices {
  template <class T>
  using R = ResultOf<M, T>;

  static R<int32_t> count(int32_t device_type) {
    return detail::get<M, int32_t>(dlrs_device_count, device_type);
  }
  static R<MemoryInfo> mem_info(DLDevice device) {
    return detail::get<M, MemoryInfo>([&](MemoryInfo *out, dlrs_error *e) {
      return dlrs_mem_info(device, &out->free_nbytes, &out->total_nbytes, e);
    });
  }
  /// What kind of memory an address is in, by the backend of a device type.
  static R<dlrs_pointer_info> pointer_device(int32_t device_type, const void *data) {
    return detail::get<M, dlrs_pointer_info>([&](dlrs_pointer_info *out, dlrs_error *e) {
      *out = Options<dlrs_pointer_info>();
      return dlrs_pointer_device(device_type, data, out, e);
    });
  }
  /// Whether a device may use the memory of another one: 0 it cannot, 1 it could, 2 it does.
  static R<int32_t> peer_access(DLDevice device, DLDevice peer) {
    return detail::get<M, int32_t>(dlrs_peer_access_query, device, peer);
  }
  /// Lets a device use the memory of another one, or ends that; twice is no failure.
  static R<void> set_peer_access(DLDevice device, DLDevice peer, bool enabled) {
    return detail::run<M>(dlrs_peer_access_set, device, peer, int32_t{enabled});
  }
  /// Waits for a stream of another owner.
  static R<void> stream_sync(StreamRef stream) {
    return detail::run<M>(dlrs_stream_sync, stream.device, stream.handle);
  }
  /// Releases what Tensor::release_after kept and is done with; how many are still waiting.
  static R<uint64_t> release_drain() { return detail::get<M, uint64_t>(dlrs_release_drain); }
  /// Where the data of new tensors comes from; NULL for the default. The one before.
  static R<const dlrs_allocator *> set_allocator(DLDeviceType device_type,
                                                 const dlrs_allocator *allocator) {
    return detail::get<M, const dlrs_allocator *>(dlrs_allocator_set, device_type, allocator);
  }
  /// Sets the backend of a device type; NULL for the library's own. Returns the previous one.
  static R<const dlrs_backend *> set_backend(int32_t device_type, const dlrs_backend *backend) {
    return detail::get<M, const dlrs_backend *>(dlrs_backend_set, device_type, backend);
  }
  /// The driver's file, before the first use of it. The path is kept, not copied.
  static R<void> set_driver_path(int32_t device_type, const char *path) {
    return detail::run<M>(dlrs_driver_path_set, device_type, path);
  }
#ifndef DLRS_NO_PYTHON
  /// The stream that a number of Python's `__dlpack__(stream=...)` means.
  static R<PyStream> stream_from_py(int64_t number, DLDevice device) {
    return detail::get<M, PyStream>([&](PyStream *out, dlrs_error *e) {
      int32_t sync = 0;
      const dlrs_status status = dlrs_stream_from_py(number, device, &out->handle, &sync, e);
      out->sync = sync != 0;
      return status;
    });
  }
  static R<int64_t> stream_to_py(StreamRef stream) {
    return detail::get<M, int64_t>(dlrs_stream_to_py, stream.handle, stream.device);
  }
#endif
};

using Stream = BasicStream<DefaultMode>;
using Event = BasicEvent<DefaultMode>;
using Pool = BasicPool<DefaultMode>;
using Memory = BasicMemory<DefaultMode>;
using Registration = BasicRegistration<DefaultMode>;
using Devices = BasicDevices<DefaultMode>;
namespace nothrow {
using Stream = BasicStream<Returning>;
using Event = BasicEvent<Returning>;
using Pool = BasicPool<Returning>;
using Memory = BasicMemory<Returning>;
using Registration = BasicRegistration<Returning>;
using Devices = BasicDevices<Returning>;
}  // namespace nothrow

}  // namespace dlpack_rs

#endif  // DLPACK_RS_DEVICE_HPP_
