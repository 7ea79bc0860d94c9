// Executes PTX. The threads of a block run together: those at the lowest instruction first, so that
// they meet again after a branch. A race on shared memory is therefore not left to chance but looked
// for: two threads use a byte between two barriers, and one of them writes it.
#include "program.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

using std::string_view;
typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef int8_t i8; typedef int16_t i16; typedef int32_t i32; typedef int64_t i64;

namespace {
enum : u32 { THREADS = PROGRAM_THREADS, SLOTS = 512, SHARED = 49152, OPS = 8192, KERNELS = 32, LABELS = 2048 };
enum : u32 { PARKED = 1u << 31, DONE = ~0u, STEPS = 1 << 20 };
enum { TID, NTID, CTAID, NCTAID, TEMPORARY, REGISTERS = TEMPORARY + 3 };
const u64 POISON = 0xa5c3f18d5b7e9246;

// A register of all threads, or without one (slot < 0) a value; of an address it is added.
struct Operand { int slot = 0; u64 value = 0; };
struct Block;
struct Op;
typedef void Run(Block &, const Op &);
enum Kind : u8 { PLAIN, BRANCH, BARRIER, RETURN };
struct Op {
  Run *run;
  Operand a[5];
  string_view text;
  int guard; // a predicate's slot, or -1
  bool unless;
  Kind kind;
  u8 n, size, sign; // of an access to memory
  u32 target;
  std::atomic<bool> executed;
};
struct Kernel { string_view name; u32 first, end, slots, shared; };
struct Shadow { u32 written, read; u16 writer, reader; }; // when, and by which thread
enum : u16 { SEVERAL = 0xffff };

// One thread of the host runs a block at a time.
struct Block {
  u64 file[SLOTS][THREADS];
  u8 shared[SHARED];
  Shadow shadow[SHARED];
  u32 at[THREADS], n;
  u16 on[THREADS];
  u32 turn, start; // counts barriers and blocks; when this block started
  const Kernel *kernel;
  const u8 *argument;
  program_memory *memory;
  void *of;
  program_range near[2];
  bool bad;
  char wrong[200];

  const u64 *in(const Operand &a, int temporary) {
    if (a.slot >= 0) return file[a.slot];
    u64 *lanes = file[TEMPORARY + temporary];
    for (u32 i = 0; i < THREADS; ++i) lanes[i] = a.value;
    return lanes;
  }
  void fail(const char *what, u64 at, u32 size) {
    if (!bad) std::snprintf(wrong, sizeof wrong, "%s: address %llx, %u bytes", what, (unsigned long long)at, size);
    bad = true;
  }
  void use_shared(u64 at, u32 size, u32 me, bool store) {
    for (u64 i = at; i < at + size; ++i) {
      Shadow &s = shadow[i];
      if (!store && s.written < start) return fail("shared memory that was not written is read", at, size);
      bool others = s.written == turn && s.writer != me;
      if (store) others |= s.read == turn && s.reader != me;
      if (others) return fail("a race on shared memory", at, size);
      if (store) s.written = turn, s.writer = (u16)me;
      else s.reader = s.read == turn && s.reader != me ? +SEVERAL : (u16)me, s.read = turn;
    }
  }
  __attribute__((always_inline)) u8 *reach(char space, u64 at, u32 size, u32 me, bool store) {
    static u8 nowhere[16];
    if ((at & (size - 1)) != 0) return fail("an address that is not aligned", at, size), nowhere;
    if (space == 'g') {
      for (int i = 0; i < 3; ++i) {
        if (i == 2) {
          near[1] = near[0];
          if (!memory(of, at, &near[0])) near[0] = {0, 0, nullptr};
        }
        const program_range &range = near[i % 2];
        if (at >= range.low && at < range.high && size <= range.high - at) return range.bytes + (at - range.low);
      }
      return fail("an address that the device does not reach", at, size), nowhere;
    }
    u32 room = space == 's' ? kernel->shared : (u32)PROGRAM_ARGUMENT;
    if (at >= room || size > room - at || (store && space == 'p')) {
      return fail(space == 's' ? "not in shared memory" : "not in the argument", at, size), nowhere;
    }
    if (space == 'p') return const_cast<u8 *>(argument) + at;
    use_shared(at, size, me, store);
    return shared + at;
  }
};

template <class F> inline void each(Block &b, F f) {
  if (b.n == THREADS) {
#pragma GCC ivdep
    for (u32 i = 0; i < THREADS; ++i) f(i);
  } else {
    for (u32 k = 0; k < b.n; ++k) f(b.on[k]);
  }
}

// Registers have 64 bits here; each instruction reads as many as its type has.
template <class T, class F> void alu(Block &b, const Op &op) {
  const u64 *x = b.in(op.a[1], 0), *y = b.in(op.a[2], 1), *z = b.in(op.a[3], 2);
  u64 *out = b.file[op.a[0].slot];
  each(b, [=](u32 i) { out[i] = (u64)F::of((T)x[i], (T)y[i], (T)z[i]); });
}
#define FUNCTION(name, result) struct name { template <class T> static auto of(T a, T b, T c) { (void)a, (void)b, (void)c; return result; } };
FUNCTION(Mov, a)
FUNCTION(Add, (T)((u64)a + (u64)b))
FUNCTION(Sub, (T)((u64)a - (u64)b))
FUNCTION(Mul, (T)((u64)a * (u64)b))
FUNCTION(Mad, (T)((u64)a * (u64)b + (u64)c))
FUNCTION(Neg, (T)(0 - (u64)a))
FUNCTION(Wide, (u64)a * (u64)b)
FUNCTION(High, ((u64)a * (u64)b) >> 32)
FUNCTION(Div, b == 0 ? (T)~(T)0 : (T)(a / b))
FUNCTION(And, (T)(a & b))
FUNCTION(Or, (T)(a | b))
FUNCTION(Xor, (T)(a ^ b))
FUNCTION(Not, (T)~a)
FUNCTION(NotPred, !a)
FUNCTION(Shl, (u32)b >= 8 * sizeof(T) ? (T)0 : (T)((u64)a << (u32)b % 64))
FUNCTION(Shr, (u32)b >= 8 * sizeof(T) ? (T)(a < 0 ? -1 : 0) : (T)(a >> (u32)b % (8 * sizeof(T))))
FUNCTION(Min, a < b ? a : b)
FUNCTION(Max, a < b ? b : a)
FUNCTION(Eq, a == b)
FUNCTION(Ne, a != b)
FUNCTION(Lt, a < b)
FUNCTION(Le, a <= b)
FUNCTION(Gt, a > b)
FUNCTION(Ge, a >= b)
FUNCTION(Selp, c ? a : b)
template <class D> struct To { template <class T> static D of(T a, T, T) { return (D)a; } };
struct Prmt {
  static u32 of(u32 a, u32 b, u32 pick) {
    u64 both = (u64)b << 32 | a;
    u32 all = 0;
    for (int i = 0; i < 4; ++i) {
      u32 s = pick >> 4 * i & 15, byte = (u32)(both >> 8 * (s & 7)) & 255;
      all |= (s & 8 ? byte >> 7 ? 255 : 0 : byte) << 8 * i;
    }
    return all;
  }
};
struct Pack { static u32 of(u16 a, u16 b, u16) { return (u32)b << 16 | a; } };

u64 get(const u8 *from, u32 size) {
  u64 value = 0;
  switch (size) {
  case 1: std::memcpy(&value, from, 1); break;
  case 2: std::memcpy(&value, from, 2); break;
  case 4: std::memcpy(&value, from, 4); break;
  default: std::memcpy(&value, from, 8);
  }
  return value;
}
template <char SPACE> void load(Block &b, const Op &op) {
  const Operand &address = op.a[op.n];
  const u64 *at = b.in(address, 0), more = address.slot < 0 ? 0 : address.value;
  u32 first = b.on[0], same = 1;
  // All threads mostly read the same part of the argument.
  if (SPACE == 'p') each(b, [=, &same](u32 i) { same &= at[i] == at[first]; });
  auto read = [&](u32 k, const u8 *from) {
    u64 value = get(from + k * op.size, op.size);
    return op.sign ? (u64)((i64)(value << (64 - 8 * op.size)) >> (64 - 8 * op.size)) : value;
  };
  if (SPACE == 'p' && same) {
    const u8 *from = b.reach(SPACE, at[first] + more, op.n * op.size, first, false);
    for (u32 k = 0; k < op.n; ++k) {
      u64 value = read(k, from), *out = b.file[op.a[k].slot];
      each(b, [=](u32 i) { out[i] = value; });
    }
    return;
  }
  each(b, [&, more](u32 i) {
    const u8 *from = b.reach(SPACE, at[i] + more, op.n * op.size, i, false);
    for (u32 k = 0; k < op.n; ++k) b.file[op.a[k].slot][i] = read(k, from);
  });
}
template <char SPACE> void store(Block &b, const Op &op) {
  const u64 *at = b.in(op.a[0], 0), more = op.a[0].slot < 0 ? 0 : op.a[0].value;
  each(b, [&, more](u32 i) {
    u8 *to = b.reach(SPACE, at[i] + more, op.n * op.size, i, true);
    for (u32 k = 1; k <= op.n; ++k, to += op.size) {
      u64 value = op.a[k].slot < 0 ? op.a[k].value : b.file[op.a[k].slot][i];
      switch (op.size) {
      case 1: std::memcpy(to, &value, 1); break;
      case 2: std::memcpy(to, &value, 2); break;
      case 4: std::memcpy(to, &value, 4); break;
      default: std::memcpy(to, &value, 8);
      }
    }
  });
}

#define INTEGERS(name, F) {name ".u32", alu<u32, F>}, {name ".s32", alu<i32, F>}, {name ".u64", alu<u64, F>}, {name ".s64", alu<i64, F>}
#define BITS(name, F) {name ".b32", alu<u32, F>}, {name ".b64", alu<u64, F>}
#define PREDICATE(name, F) {name ".pred", alu<bool, F>}
// The instructions that are known; each other one is an error.
const struct { string_view name; Run *run; } table[] = {
    INTEGERS("mov", Mov), BITS("mov", Mov), PREDICATE("mov", Mov), {"cvta.to.global.u64", alu<u64, Mov>},
    {"cvt.u64.u32", alu<u32, To<u64>>}, {"cvt.s64.s32", alu<i32, To<i64>>}, {"cvt.u32.u64", alu<u64, To<u32>>},
    {"cvt.u32.u16", alu<u16, To<u32>>}, {"cvt.u16.u32", alu<u32, To<u16>>},
    INTEGERS("add", Add), INTEGERS("sub", Sub), INTEGERS("mul.lo", Mul), INTEGERS("mad.lo", Mad),
    {"neg.s32", alu<i32, Neg>}, {"neg.s64", alu<i64, Neg>}, {"mul.hi.u32", alu<u32, High>},
    {"mul.wide.u16", alu<u16, Wide>}, {"mul.wide.u32", alu<u32, Wide>}, {"div.u32", alu<u32, Div>},
    BITS("and", And), BITS("or", Or), BITS("xor", Xor), BITS("not", Not), BITS("shl", Shl), INTEGERS("shr", Shr),
    PREDICATE("and", And), PREDICATE("or", Or), PREDICATE("xor", Xor), PREDICATE("not", NotPred),
    INTEGERS("min", Min), INTEGERS("max", Max), {"prmt.b32", alu<u32, Prmt>}, BITS("selp", Selp),
    INTEGERS("setp.eq", Eq), INTEGERS("setp.ne", Ne), INTEGERS("setp.lt", Lt), INTEGERS("setp.le", Le),
    INTEGERS("setp.gt", Gt), INTEGERS("setp.ge", Ge), BITS("setp.eq", Eq), BITS("setp.ne", Ne),
    {"ld.param", load<'p'>}, {"ld.shared", load<'s'>}, {"ld.global", load<'g'>},
    {"st.shared", store<'s'>}, {"st.global", store<'g'>},
};

bool begins(string_view text, string_view with) { return text.substr(0, with.size()) == with; }
string_view cut(string_view &text, char at) { // what is before the first one, which is taken away
  size_t n = std::min(text.find(at), text.size());
  string_view first = text.substr(0, n);
  text.remove_prefix(std::min(n + 1, text.size()));
  return first;
}
string_view trim(string_view text) {
  while (!text.empty() && strchr(" \t\r", text.front())) text.remove_prefix(1);
  while (!text.empty() && strchr(" \t\r", text.back())) text.remove_suffix(1);
  return text;
}
bool number(string_view text, u64 *out) {
  char digits[32] = "", *end;
  if (text.empty() || text.size() >= sizeof digits) return false;
  text.copy(digits, text.size());
  *out = text[0] == '-' ? (u64)std::strtoll(digits, &end, 0) : std::strtoull(digits, &end, 0);
  return *end == '\0';
}
} // namespace

struct program {
  size_t nbytes;
  u32 n, n_kernels;
  Kernel kernels[KERNELS];
  Op ops[OPS];
};

namespace {
struct Named { string_view name; u64 value; };
struct Parser {
  program *to;
  Kernel *kernel = nullptr;
  Named stems[8], symbols[8], labels[LABELS];
  u32 n_stems = 0, n_symbols = 0, n_labels = 0;
  string_view targets[OPS];

  template <u32 N> static const Named *find(const Named (&all)[N], u32 n, string_view name) {
    for (u32 i = 0; i < n; ++i) if (all[i].name == name) return &all[i];
    return nullptr;
  }
  bool reg(string_view text, int *slot) {
    static const Named special[] = {{"%tid.x", TID}, {"%ntid.x", NTID}, {"%ctaid.x", CTAID}, {"%nctaid.x", NCTAID}};
    if (const Named *found = find(special, 4, text)) return *slot = (int)found->value, true;
    size_t digits = text.find_first_of("0123456789");
    u64 index;
    if (digits == text.npos || !number(text.substr(digits), &index)) return false;
    const Named *stem = find(stems, n_stems, text.substr(0, digits));
    if (stem == nullptr) return false;
    *slot = (int)((stem->value >> 32) + index);
    return index < (u32)stem->value;
  }
  bool operand(string_view text, Operand *out) {
    out->slot = -1;
    if (!text.empty() && text[0] == '[') {
      string_view inside = text.substr(1, text.find(']') - 1), base = cut(inside, '+');
      u64 more = 0;
      if (!inside.empty() && !number(inside, &more)) return false;
      if (!operand(base, out)) return false;
      out->value += more;
      return true;
    }
    if (!text.empty() && text[0] == '%') return reg(text, &out->slot);
    if (const Named *found = find(symbols, n_symbols, text)) return out->value = found->value, true;
    return number(text, &out->value);
  }
  bool access(Op &op, string_view name, u32 count) { // ld and st: of a vector, of a type
    size_t dot = name.find('.', 3);
    string_view rest = name.substr(std::min(dot, name.size()));
    op.n = 1;
    if (begins(rest, ".v")) op.n = (u8)(rest[2] - '0'), rest.remove_prefix(3);
    if (rest.size() < 3 || (op.n != 1 && op.n != 2 && op.n != 4) || !strchr("usb", rest[1])) return false;
    u64 bits;
    if (!number(rest.substr(2), &bits) || (bits != 8 && bits != 16 && bits != 32 && bits != 64)) return false;
    op.size = (u8)(bits / 8), op.sign = rest[1] == 's';
    for (auto &row : table) if (row.name == name.substr(0, dot)) op.run = row.run;
    return op.run && count == op.n + 1u && op.n * op.size <= 16;
  }
  bool instruction(string_view text) {
    if (kernel == nullptr || to->n == OPS || text.back() != ';') return false;
    Op &op = to->ops[to->n];
    op.text = text;
    op.guard = -1;
    text.remove_suffix(1);
    if (text[0] == '@') {
      op.unless = text[1] == '!';
      text.remove_prefix(1 + op.unless);
      if (!reg(cut(text, ' '), &op.guard)) return false;
    }
    string_view name = cut(text, ' '), all = text;
    ++to->n;
    if (name == "bra" || name == "bra.uni") return op.kind = BRANCH, targets[to->n - 1] = trim(text), true;
    if (name == "bar.sync") return op.kind = BARRIER, trim(text) == "0";
    if (name == "ret") return op.kind = RETURN, true;
    u32 n = 0;
    for (; !text.empty(); ++n) {
      string_view one = cut(text, ',');
      while (!one.empty() && strchr("{ ", one.front())) one.remove_prefix(1);
      while (!one.empty() && strchr("} ", one.back())) one.remove_suffix(1);
      if (n == 5 || !operand(one, &op.a[n])) return false;
    }
    if (begins(name, "ld.") || begins(name, "st.")) return access(op, name, n);
    if (name == "mov.b32" && n == 3 && all.find('{') != all.npos && all[0] != '{') return op.run = alu<u16, Pack>, true;
    for (auto &row : table) if (row.name == name) op.run = row.run;
    return op.run && op.a[0].slot >= 0 && all.find('{') == all.npos;
  }
  bool close() {
    for (u32 i = kernel->first; i < to->n; ++i) {
      if (to->ops[i].kind != BRANCH) continue;
      const Named *label = find(labels, n_labels, targets[i]);
      if (label == nullptr) return false;
      to->ops[i].target = (u32)label->value;
    }
    kernel->end = to->n;
    n_labels = n_stems = n_symbols = 0;
    kernel = nullptr;
    return true;
  }
  bool declaration(string_view text) {
    for (const char *skipped : {".version ", ".target ", ".address_size 64", ".pragma \"nounroll\";", "(", ")", "{"}) {
      if (begins(text, skipped)) return true;
    }
    if (begins(text, ".visible .entry ") && text.back() == '(' && kernel == nullptr && to->n_kernels < KERNELS) {
      kernel = &to->kernels[to->n_kernels++];
      *kernel = {text.substr(16, text.size() - 17), to->n, 0, REGISTERS, 0};
      return true;
    }
    if (text == ".maxntid 256,1,1") return true;
    // A name, how many of it, how it is aligned: .reg .b32 %r<9>; .shared .align 16 .b8 all[99];
    string_view last = text.substr(text.find_last_of(' ') + 1), name = last.substr(0, last.find_first_of("<["));
    string_view many = last.substr(name.size()), align = text.substr(std::min(text.find(".align ") + 7, text.size()));
    u64 n, aligned = 1;
    if (kernel == nullptr || many.empty() || !number(many.substr(1, many.find_first_of(">]") - 1), &n)) return false;
    if (begins(text, ".reg ") && n_stems < 8 && kernel->slots + n <= SLOTS) {
      stems[n_stems++] = {name, (u64)kernel->slots << 32 | n};
      return kernel->slots += (u32)n, true;
    }
    if (n_symbols == 8 || !number(cut(align, ' '), &aligned)) return false;
    if (begins(text, ".param ")) return symbols[n_symbols++] = {name, 0}, n == PROGRAM_ARGUMENT;
    kernel->shared = (kernel->shared + (u32)aligned - 1) / (u32)aligned * (u32)aligned;
    symbols[n_symbols++] = {name, kernel->shared};
    return begins(text, ".shared ") && (kernel->shared += (u32)n) <= SHARED;
  }
  bool parse(string_view text) {
    if (text == "}") return kernel != nullptr && close();
    if (text[0] == '$' && text.back() == ':') {
      if (n_labels == LABELS) return false;
      labels[n_labels++] = {text.substr(0, text.size() - 1), to->n};
      return true;
    }
    if (text[0] == '@' || (text[0] >= 'a' && text[0] <= 'z')) return instruction(text);
    return declaration(text);
  }
};

// Not the program's malloc, whose calls tests count and make fail.
void *room(size_t nbytes) {
  void *all = mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return all == MAP_FAILED ? nullptr : all;
}

void step(Block &b, const Op &op) {
  if (op.guard < 0) return op.run(b, op);
  u32 n = b.n;
  u16 on[THREADS];
  std::memcpy(on, b.on, sizeof on);
  b.n = 0;
  for (u32 k = 0; k < n; ++k) if ((b.file[op.guard][on[k]] != 0) != op.unless) b.on[b.n++] = on[k];
  if (b.n != 0) op.run(b, op);
  std::memcpy(b.on, on, sizeof on);
  b.n = n;
}

void run_block(Block &b, program *self) {
  const Kernel &kernel = *b.kernel;
  for (u32 i = 0; i < THREADS; ++i) b.at[i] = kernel.first;
  for (u32 steps = 0;;) {
    u32 pc = DONE, others = DONE, done = 0;
    for (u32 i = 0; i < THREADS; ++i) pc = std::min(pc, b.at[i]), done += b.at[i] == DONE;
    if (pc == DONE) return;
    if (pc & PARKED) {
      if (done != 0) return b.fail("a barrier that not all threads reach", 0, 0);
      for (u32 i = 0; i < THREADS; ++i) b.at[i] &= ~PARKED;
      ++b.turn;
      continue;
    }
    b.n = 0;
    for (u32 i = 0; i < THREADS; ++i) {
      if (b.at[i] == pc) b.on[b.n++] = (u16)i;
      else others = std::min(others, b.at[i]);
    }
    auto all_to = [&](u32 to) { for (u32 k = 0; k < b.n; ++k) b.at[b.on[k]] = to; };
    for (bool going = true; going;) {
      if (pc >= kernel.end) return b.fail("a kernel that does not return", 0, 0);
      Op &op = self->ops[pc];
      if (!op.executed.load(std::memory_order_relaxed)) op.executed.store(true, std::memory_order_relaxed);
      if (++steps == STEPS) return b.fail("a block that does not end", 0, 0);
      if (op.kind == PLAIN) {
        step(b, op);
        if (b.bad) return;
        ++pc;
      } else if (op.kind == BRANCH && op.guard >= 0) {
        u32 taken = 0;
        for (u32 k = 0; k < b.n; ++k) {
          bool go = (b.file[op.guard][b.on[k]] != 0) != op.unless;
          taken += go;
          b.at[b.on[k]] = go ? op.target : pc + 1;
        }
        if (taken != 0 && taken != b.n) break;
        pc = taken ? op.target : pc + 1;
      } else if (op.kind == BRANCH) {
        pc = op.target;
      } else {
        if (op.guard >= 0) return b.fail("a barrier or return with a condition", 0, 0);
        all_to(op.kind == RETURN ? +DONE : (pc + 1) | PARKED);
        break;
      }
      if (pc >= others) all_to(pc), going = false;
    }
  }
}
} // namespace

extern "C" program *program_new(const char *text, char wrong[200]) {
  size_t length = std::strlen(text), nbytes = sizeof(program) + length + 1;
  program *self = (program *)room(nbytes);
  Parser *parser = (Parser *)room(sizeof(Parser));
  if (self == nullptr || parser == nullptr) std::abort();
  self->nbytes = nbytes;
  parser->to = self;
  char *copy = (char *)(self + 1);
  string_view rest((const char *)std::memcpy(copy, text, length), length), line;
  bool good = true;
  while (good && !rest.empty()) {
    line = cut(rest, '\n');
    line = trim(line.substr(0, line.find("//")));
    good = line.empty() || parser->parse(line);
  }
  if (good && parser->kernel != nullptr) good = false, line = "the end of the text in a kernel";
  munmap(parser, sizeof *parser);
  if (good) return self;
  std::snprintf(wrong, 200, "not understood: %.*s", (int)std::min(line.size(), (size_t)150), line.data());
  return program_end(self), nullptr;
}

extern "C" void program_end(program *self) { munmap(self, self->nbytes); }

extern "C" int program_kernel(const program *self, const char *name) {
  for (u32 i = 0; i < self->n_kernels; ++i) if (self->kernels[i].name == name) return (int)i;
  return -1;
}

extern "C" const char *program_run(program *self, int kernel, unsigned blocks, unsigned grid,
                                   const void *argument, program_memory *memory, void *of) {
  static thread_local Block *mine;
  if (mine == nullptr) mine = (Block *)room(sizeof(Block));
  if (mine == nullptr) std::abort();
  Block &b = *mine;
  b.kernel = &self->kernels[kernel];
  b.argument = (const u8 *)argument, b.memory = memory, b.of = of, b.bad = false;
  for (auto &range : b.near) range = {0, 0, nullptr};
  for (u32 slot = TEMPORARY; slot < b.kernel->slots; ++slot) {
    for (u64 &lane : b.file[slot]) lane = POISON;
  }
  for (u32 i = 0; i < THREADS; ++i) b.file[TID][i] = i, b.file[NTID][i] = THREADS, b.file[NCTAID][i] = grid;
  for (u32 block = 0; block < blocks && !b.bad; ++block) {
    for (u64 &lane : b.file[CTAID]) lane = block;
    b.start = ++b.turn;
    run_block(b, self);
  }
  return b.bad ? b.wrong : nullptr;
}

extern "C" const char *program_instruction(const program *self, unsigned number, int *executed) {
  static thread_local char text[128];
  if (number >= self->n) return nullptr;
  const Op &op = self->ops[number];
  const Kernel *kernel = self->kernels;
  while (kernel->end <= number) ++kernel;
  *executed = op.executed.load(std::memory_order_relaxed);
  std::snprintf(text, sizeof text, "%.*s: %.*s", (int)kernel->name.size(), kernel->name.data(), (int)op.text.size(), op.text.data());
  return text;
}
