// F15: a callback that throws ends the process in std::terminate, at once: nothing unwinds through
// the library, and no code after the call runs.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "harness.h"

namespace {

int report[2];

void terminated() {
  (void)!write(report[1], "T", 1);
  std::abort();
}

void throws(void *) { throw std::runtime_error("a callback must not throw"); }
void throws_versioned(DLManagedTensorVersioned *) { throws(nullptr); }
void throws_legacy(DLManagedTensor *) { throws(nullptr); }
void throws_message(void *, const char *, const char *) { throws(nullptr); }

// Runs `body` in a child: it must die of SIGABRT after std::terminate, and not come back.
void dies(const char *name, void (*body)()) {
  t_context = name;
  CHECK(pipe(report) == 0);
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    std::set_terminate(terminated);
    try {
      body();
    } catch (...) {
      (void)!write(report[1], "C", 1);  // caught: it has unwound through the library
    }
    _exit(0);
  }
  close(report[1]);
  char letters[4] = {0};
  long got = static_cast<long>(read(report[0], letters, sizeof letters));
  close(report[0]);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(got == 1 && letters[0] == 'T');
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

t_tensor good;

DLManagedTensorVersioned *wrapped(dlrs_free_fn free_fn) {
  DLManagedTensorVersioned *out = nullptr;
  t_make(&good);
  CHECK(dlrs_tensor_wrap(&good.managed.dl_tensor, 0, free_fn, nullptr, &out, nullptr) == DLRS_OK);
  return out;
}

void free_fn_throws() { dlrs_release(wrapped(throws)); }

void before_throws() {
  DLManagedTensorVersioned *out = wrapped(nullptr);
  dlrs_attach(out, throws, nullptr, DLRS_BEFORE_FREE, nullptr);
  out->deleter(out);
}

void after_throws() {
  DLManagedTensorVersioned *out = wrapped(nullptr);
  dlrs_attach(out, throws, nullptr, DLRS_AFTER_FREE, nullptr);
  dlrs_release(out);
}

void foreign_throws() {
  t_make(&good);
  good.managed.deleter = throws_versioned;
  DLManagedTensorVersioned *in = &good.managed, *out = nullptr;
  dlrs_import_take(&in, nullptr, &out, nullptr);
  dlrs_release(out);
}

void foreign_released() {
  t_make(&good);
  good.managed.deleter = throws_versioned;
  dlrs_release(&good.managed);
}

void legacy_throws() {
  t_make(&good);
  good.legacy.deleter = throws_legacy;
  DLManagedTensor *in = &good.legacy;
  DLManagedTensorVersioned *out = nullptr;
  dlrs_from_legacy_take(&in, 0, &out, nullptr);
  dlrs_release(out);
}

void set_error_throws() {
  dlrs_error error;
  error.struct_size = sizeof error;
  dlrs_validate(nullptr, 0, DLRS_LEVEL_STRICT, &error);
  dlrs_error_forward(&error, nullptr, throws_message, nullptr);
}

}  // namespace

int main() {
  dies("free_fn", free_fn_throws);
  dies("before free", before_throws);
  dies("after free", after_throws);
  dies("foreign deleter", foreign_throws);
  dies("foreign deleter, released", foreign_released);
  dies("legacy deleter", legacy_throws);
  dies("SetError", set_error_throws);
  return t_close();
}
