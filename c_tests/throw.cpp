// F15: a callback that throws ends the process in std::terminate, immediately: the library is not
// unwound, and no code after the call runs. On 64-bit Windows, where every function has unwind
// tables, the exception may instead propagate through the library, and nothing else may happen.
#ifdef _WIN32
#include <process.h>
#else
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "harness.h"

namespace {

// The exit status of a process with a callback that throws.
enum { TERMINATED = 'T', UNWOUND = 'U', RETURNED = 'R' };

void throws(void *) { throw std::runtime_error("a callback must not throw"); }
void throws_versioned(DLManagedTensorVersioned *) { throws(nullptr); }
void throws_legacy(DLManagedTensor *) { throws(nullptr); }
void throws_message(void *, const char *, const char *) { throws(nullptr); }

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

const struct {
  const char *name;
  void (*body)();
} cases[] = {
    {"free_fn", free_fn_throws},
    {"before free", before_throws},
    {"after free", after_throws},
    {"foreign deleter", foreign_throws},
    {"foreign deleter, released", foreign_released},
    {"legacy deleter", legacy_throws},
    {"SetError", set_error_throws},
};
const int CASES = sizeof cases / sizeof *cases;

[[noreturn]] void run(int number) {
  std::set_terminate([] { _exit(TERMINATED); });
  try {
    cases[number].body();
  } catch (...) {
    _exit(UNWOUND);
  }
  _exit(RETURNED);
}

// The exit status of a case in a separate process; another number when it crashed.
#ifdef _WIN32
int status_of(const char *self, int number) {
  const char digits[] = {static_cast<char>('0' + number), '\0'};
  return static_cast<int>(_spawnl(_P_WAIT, self, self, digits, nullptr));
}
bool allowed(int status) { return status == TERMINATED || status == UNWOUND; }
#else
int status_of(const char *, int number) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) run(number);
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
bool allowed(int status) { return status == TERMINATED; }
#endif

}  // namespace

int main(int argc, char **argv) {
  if (argc > 1) run(std::atoi(argv[1]) % CASES);
  for (int number = 0; number < CASES; ++number) {
    t_context = cases[number].name;
    int status = status_of(argv[0], number);
    if (!CHECK(allowed(status))) std::printf("exit status %d\n", status);
    if (status == UNWOUND) std::printf("%s: came back through the library\n", t_context);
  }
  return t_close();
}
