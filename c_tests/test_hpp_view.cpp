// Tests of views, steps and shapes of dlpack_rs_core.hpp. Ends with `N passed, N failed`.
#include "dlpack_rs_core.hpp"

#include <random>
#include <utility>
#include <vector>

#include "hpp_check.h"

using namespace dlpack_rs;

#if DLRS_CXX_EXCEPTIONS
// The error of a failed call, or DLRS_OK.
template <class F>
static dlrs_status status_of(F &&f) {
  try {
    f();
  } catch (const Error &error) {
    return error.status();
  }
  return DLRS_OK;
}
#define STATUS(...) status_of([&] { static_cast<void>(__VA_ARGS__); })

static Tensor counted(Shape shape) {  // int32 elements 0, 1, 2, ...
  Tensor t = Tensor::make<int32_t>(shape);
  int32_t next = 0;
  for (int32_t &element : t.span<int32_t>()) element = next++;
  return t;
}

// Views by members and by steps, against loops over plain vectors.
static void viewing() {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % uint64_t(n)); };
  for (int round = 0; round < 200; ++round) {
    int64_t n[3] = {1 + below(4), 1 + below(4), 1 + below(4)};
    Tensor t = counted(n);
    std::vector<int32_t> wanted(static_cast<size_t>(n[0] * n[1] * n[2]));
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<int32_t>(i);
    std::vector<ViewStep> steps;
    const Tensor base = t.retain();
    for (int step = 0; step < 3; ++step) {
      const int32_t axis = static_cast<int32_t>(below(3)), other = static_cast<int32_t>(below(3));
      const int64_t start = below(n[axis]), every = 1 + below(3);
      const int64_t which = below(3), count = (n[axis] - start + every - 1) / every;
      int64_t m[3] = {n[0], n[1], n[2]};
      if (which == 0) {
        t = t.flip(axis);
        steps.push_back(ViewStep::flip(axis));
      } else if (which == 1) {
        t = t.slice(axis, start, INT64_MAX, every);
        steps.push_back(ViewStep::slice(axis, start, INT64_MAX, every));
        m[axis] = count;
      } else {
        t = t.transpose(axis, other);
        steps.push_back(ViewStep::transpose(axis, other));
        std::swap(m[axis], m[other]);
      }
      std::vector<int32_t> next;
      for (int64_t i = 0; i < m[0]; ++i)
        for (int64_t j = 0; j < m[1]; ++j)
          for (int64_t k = 0; k < m[2]; ++k) {
            int64_t at[3] = {i, j, k};
            if (which == 0) at[axis] = n[axis] - 1 - at[axis];
            if (which == 1) at[axis] = start + at[axis] * every;
            if (which == 2) std::swap(at[axis], at[other]);
            next.push_back(wanted[static_cast<size_t>((at[0] * n[1] + at[1]) * n[2] + at[2])]);
          }
      wanted.swap(next);
      for (int i = 0; i < 3; ++i) n[i] = m[i];
    }
    const auto seen = t.as<int32_t, 3>();
    bool right = true;
    size_t at = 0;
    for (int64_t i = 0; i < n[0]; ++i)
      for (int64_t j = 0; j < n[1]; ++j)
        for (int64_t k = 0; k < n[2]; ++k) right = right && seen(i, j, k) == wanted[at++];
    CHECK(right && at == wanted.size() && base.apply(steps).equal(t));
  }
}

// Each step equals the member of its name; each member returns the shape that its name implies.
static void steps() {
  Tensor t = counted({4, 6});
  const auto is = [&](const Tensor &view, const ViewStep &step, std::vector<int64_t> shape) {
    const std::vector<int64_t> seen(view.shape().begin(), view.shape().end());
    const Tensor again = t.apply({step});
    return seen == shape && again.equal(view) && again.read_only() == view.read_only();
  };
  CHECK(is(t.slice(1, 1, 5, 2), ViewStep::slice(1, 1, 5, 2), {4, 2}));
  CHECK(is(t.select(0, 2), ViewStep::select(0, 2), {6}));
  CHECK(is(t.narrow(1, 2, 3), ViewStep::narrow(1, 2, 3), {4, 3}));
  CHECK(is(t.flip(), ViewStep::flip(), {4, 6}));
  CHECK(is(t.unfold(1, 2, 3), ViewStep::unfold(1, 2, 3), {4, 2, 2}));
  CHECK(is(t.diagonal(0, 1, 1), ViewStep::diagonal(0, 1, 1), {4}));
  const int64_t axes[] = {1, 0}, shape[] = {3, 8}, wide[] = {2, 4, 6};
  CHECK(is(t.permute(axes), ViewStep::permute(axes), {6, 4}));
  CHECK(is(t.transpose(), ViewStep::transpose(), {6, 4}));
  CHECK(is(t.unsqueeze(1), ViewStep::unsqueeze(1), {4, 1, 6}));
  CHECK(is(t.reshape(shape), ViewStep::reshape(shape), {3, 8}));
  CHECK(is(t.expand(wide), ViewStep::expand(wide), {2, 4, 6}));
  CHECK(is(t.bitcast(dtype_of<uint32_t>()), ViewStep::bitcast(dtype_of<uint32_t>()), {4, 6}));
  CHECK(is(t.lanes(6), ViewStep::lanes(6), {4}));
  CHECK(is(t.as_read_only(), ViewStep::as_read_only(), {4, 6}) && t.as_read_only().read_only());
  CHECK(is(t.normalize(), ViewStep::normalize(), {4, 6}));
  t = counted({4, 1});
  CHECK(is(t.squeeze(), ViewStep::squeeze(), {4}));
  t = counted({6});
  CHECK(t.as_strided({2, 2}, {1, 2}, 1).as<int32_t, 2>()(1, 1) == 4);
  CHECK(STATUS(t.as_strided({2, 2}, {1})) == DLRS_BAD_ARG);
  CHECK(STATUS(t.reshape({4})) == DLRS_SHAPE_MISMATCH);
}

int main() {
  viewing();
  steps();
  HPP_END("test_hpp_view");
}
#else
int main() { return 0; }
#endif
