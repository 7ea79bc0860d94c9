// CPU access through the C++ headers is ordered after device work: every accessor of elements,
// through every kind of tensor, of pinned and managed memory with a pending write by a recorded
// stream, or by the default stream. ready_hpp cuda|rocm
#include "dlpack_rs.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#if __has_include(<mdspan>) && __cplusplus > 202002L
#include "dlpack_rs_mdspan.hpp"
#define HAS_MDSPAN 1
#endif
extern "C" {
#include "gpu.h"
}

using namespace dlpack_rs;
using Byte = uint8_t;

enum { NBYTES = 64, OLD = 11, NEW = 22 };

// The first element by each accessor; the printed number has two digits.
static int digits(const std::string &text) {
  const size_t bracket = text.rfind('[');
  return bracket == std::string::npos ? -1 : std::atoi(text.c_str() + bracket + 1);
}
template <class T>
static int seen(int way, const T &tensor) {
  switch (way) {
    case 0: return *tensor.template data_as<const Byte>();
    case 1: return tensor.template span<const Byte>()[0];
    case 2: return tensor.template as<const Byte, 1>()(0);
    case 3: return digits(tensor.to_string());
    case 4: {
      std::ostringstream out;
      out << tensor;
      return digits(out.str());
    }
#ifdef HAS_MDSPAN
    case 5: {
      const auto elements = to_mdspan<const Byte, 1>(tensor);
      return elements.data_handle()[0];
    }
#endif
    default: return -1;
  }
}
#ifdef HAS_MDSPAN
enum { WAYS = 6 };
#else
enum { WAYS = 5 };
#endif

enum Through { TENSOR, MOVED, SLICE, VIEW, FOREIGN, BARE, LEGACY, KINDS };

static int by(Through kind, int way, void *data, DLDevice device, void *record) {
  const int64_t count = NBYTES;
  const Described<1> memory(data, dtype_of<Byte>(), device, Shape(&count, 1));
  Tensor tensor = Tensor::borrow(memory);
  if (record) CHECK(dlrs_ready_record(tensor.get(), record, nullptr) == DLRS_OK);
  DLManagedTensorVersioned foreign = *tensor.get();
  foreign.deleter = nullptr;
  switch (kind) {
    case TENSOR: return seen(way, tensor);
    case MOVED: return seen(way, Tensor(std::move(tensor)));
    case SLICE: {
      const Tensor slice = tensor.slice(0, 1, 4);
      tensor.reset();
      return seen(way, slice);
    }
    case VIEW: return seen(way, tensor.view());
    case FOREIGN: return seen(way, TensorView(foreign));
    case BARE: return seen(way, TensorView(memory));
    case LEGACY: return seen(way, LegacyTensor(std::move(tensor).to_legacy()));
    default: return -1;
  }
}

// What it waits for: a recorded stream where the library has the record, and always the default
// stream of managed memory.
static void matrix(int managed) {
  const int place = managed ? MANAGED_HOST : PINNED_HOST;
  const DLDevice device = gpu_place(place);
  void *data = gpu_room(place, NBYTES);
  void *named = gpu_stream(0, 1);
  int cells = 0;
  for (int recorded = 0; recorded < 2; ++recorded) {
    if (!recorded && !managed) continue;  // no record
    for (int kind = 0; kind < KINDS; ++kind) {
      if (recorded && kind >= FOREIGN) continue;
      for (int way = 0; way < WAYS; ++way, ++cells) {
        gpu_write(0, data, std::string(NBYTES, char{OLD}).data(), NBYTES);
        void *stream = recorded ? named : nullptr;
        gpu_fill(0, stream, data, NEW, NBYTES);
        const int found = by(static_cast<Through>(kind), way, data, device, recorded ? stream : nullptr);
        if (found != NEW) std::printf("%s recorded %d, kind %d, way %d\n", managed ? "managed" : "pinned", recorded, kind, way);
        EQUAL(found, NEW);
        gpu_sync(0, stream);
      }
    }
  }
  EQUAL(cells, WAYS * (managed ? KINDS + FOREIGN : FOREIGN));
}
static void of_pinned() { matrix(0); }
static void of_managed() { matrix(1); }

static const gpu_row rows[] = {{"C1", "pinned memory", of_pinned, STANDIN},
                               {"C2", "managed memory", of_managed, STANDIN | ON_CUDA}};
GPU_MAIN(rows)
