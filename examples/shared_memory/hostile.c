/*
 * What an untrusted peer may send to the example: each message is refused with its reason, leaves
 * no descriptor open, and the consumer goes on. The memory of those accepted cannot be truncated.
 */
#define main example_main
#include "shared_memory.c"
#undef main
#include <dirent.h>
#include <stdbool.h>
#include <sys/resource.h>

enum { SIZED = F_SEAL_SHRINK | F_SEAL_GROW, NBYTES = 48, OF_DESCRIPTION = -1 };
enum kind { MEMFD, NO_FILE, A_FILE, A_DEVICE, A_PIPE, A_SOCKET };

typedef struct {
  const char *name, *reason; /* NULL: accepted */
  enum kind kind;
  int seals, descriptors, limit; /* limit: of descriptors that the consumer may open */
  long nbytes, sent;             /* of the memory, of the message */
  description what;
} hostile;

#define GOOD                                                                                     \
  .seals = SIZED, .descriptors = 1, .limit = 64, .nbytes = NBYTES, .sent = OF_DESCRIPTION,       \
  .what = {.dtype = {kDLFloat, 32, 1}, .ndim = 2, .shape = {3, 4}, .strides = {4, 1}}
#define MALFORMED_REASON "not one description with one descriptor"
#define OUTSIDE "outside the memory given"

static const hostile MESSAGES[] = {
    {"a good message", NULL, GOOD},
    {"a good message, every seal of the size and no more seals", NULL, GOOD,
     .seals = SIZED | F_SEAL_SEAL},
    {"elements that are not aligned", NULL, GOOD, .what.byte_offset = 1, .what.shape[0] = 2},
    {"no descriptor", MALFORMED_REASON, GOOD, .descriptors = 0},
    {"two descriptors", MALFORMED_REASON, GOOD, .descriptors = 2},
    {"three descriptors", MALFORMED_REASON, GOOD, .descriptors = 3},
    {"a hundred descriptors", MALFORMED_REASON, GOOD, .descriptors = 100},
    {"a descriptor that the consumer cannot open", MALFORMED_REASON, GOOD, .limit = 0},
    {"two descriptors, of which the consumer can open one", MALFORMED_REASON, GOOD,
     .descriptors = 2, .limit = 1},
    {"a message that is too short", MALFORMED_REASON, GOOD, .sent = sizeof(description) - 1},
    {"a message that is too long", MALFORMED_REASON, GOOD, .sent = sizeof(description) + 1},
    {"a descriptor and no message", MALFORMED_REASON, GOOD, .sent = 0},
    {"a memfd without seals", "seal its size", GOOD, .seals = 0},
    {"a memfd that may shrink", "seal its size", GOOD, .seals = F_SEAL_GROW},
    {"a memfd that may grow", "seal its size", GOOD, .seals = F_SEAL_SHRINK},
    {"a memfd with other seals only", "seal its size", GOOD, .seals = F_SEAL_SEAL},
    {"a file", "seal its size", GOOD, .kind = A_FILE},
    {"a device", "seal its size", GOOD, .kind = A_DEVICE},
    {"a pipe", "seal its size", GOOD, .kind = A_PIPE},
    {"a socket", "seal its size", GOOD, .kind = A_SOCKET},
    {"an empty memfd", "the memory is empty", GOOD, .nbytes = 0},
    {"a memfd that cannot be written", "reading and writing", GOOD, .seals = SIZED | F_SEAL_WRITE},
    {"handles of the other process", "handles", GOOD, .what.dtype = {kDLOpaqueHandle, 64, 1}},
    {"handles, several in an element", "handles", GOOD, .what.dtype = {kDLOpaqueHandle, 8, 4}},
    {"a dtype of a later version, within the memory", NULL, GOOD, .what.dtype = {200, 32, 1}},
    {"a dtype of a later version, outside", OUTSIDE, GOOD, .what.dtype = {200, 64, 1}},
    {"a dtype of no bits", "dtype", GOOD, .what.dtype.bits = 0},
    {"a dtype of no lanes", "dtype", GOOD, .what.dtype.lanes = 0},
    {"a negative rank", "ndim", GOOD, .what.ndim = -1},
    {"a rank greater than what was sent", "ndim", GOOD, .what.ndim = MAX_NDIM + 1},
    {"the greatest rank", "ndim", GOOD, .what.ndim = INT32_MAX},
    {"a negative extent", "shape", GOOD, .what.shape[0] = -3},
    {"one row too many", OUTSIDE, GOOD, .what.shape[0] = 4},
    {"the greatest extents", "", GOOD, .what.shape = {INT64_MAX, INT64_MAX}},
    {"a stride that leads before the memory", OUTSIDE, GOOD, .what.strides[0] = -4},
    {"the greatest stride", "", GOOD, .what.strides[0] = INT64_MAX},
    {"the least stride", "", GOOD, .what.strides[0] = INT64_MIN},
    {"an offset of one byte too many", OUTSIDE, GOOD, .what.byte_offset = 1},
    {"the greatest offset", "", GOOD, .what.byte_offset = UINT64_MAX},
    {"a larger dtype", OUTSIDE, GOOD, .what.dtype.bits = 64},
};

static int failures, checks;
static void check(bool right, const char *name, const char *what, const char *said) {
  ++checks;
  if (right) return;
  ++failures;
  printf("FAIL  %s: %s: %s\n", name, what, said);
}

static int open_descriptors(void) {
  int count = 0;
  DIR *all = opendir("/proc/self/fd");
  if (all == NULL) exit(2);
  while (readdir(all)) ++count;
  closedir(all);
  return count;
}

/* The peer's memory. */
static int make(const hostile *one) {
  int two[2] = {-1, -1}, memory;
  if (one->kind == A_DEVICE) return open("/dev/zero", O_RDWR);
  if ((one->kind == A_PIPE && pipe(two) != 0) ||
      (one->kind == A_SOCKET && socketpair(AF_UNIX, SOCK_STREAM, 0, two) != 0))
    return -1;
  if (two[0] >= 0) return close(two[1]), two[0];
  if (one->kind == A_FILE) {
    char name[] = "/tmp/hostileXXXXXX";
    memory = mkstemp(name);
    unlink(name);
  } else {
    memory = memfd_create("hostile", MFD_ALLOW_SEALING);
  }
  if (ftruncate(memory, one->nbytes) != 0) return -1;
  if (one->kind == MEMFD && fcntl(memory, F_ADD_SEALS, one->seals) != 0) return -1;
  return memory;
}

static bool post(int socket, const hostile *one, int memory) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(100 * sizeof(int))];
  } control = {.bytes = {0}};
  const size_t length = (size_t)one->descriptors * sizeof(int);
  char text[sizeof(description) + 1] = {0};
  memcpy(text, &one->what, sizeof one->what);
  struct iovec body = {text, one->sent < 0 ? sizeof one->what : (size_t)one->sent};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};
  if (one->descriptors > 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(length);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(length);
    for (int i = 0; i < one->descriptors; ++i)
      memcpy(CMSG_DATA(rights) + (size_t)i * sizeof memory, &memory, sizeof memory);
  }
  return sendmsg(socket, &message, 0) == (ssize_t)body.iov_len;
}

/* What take() and wrap() make of one message, and what they leave open. */
static void receive(int *sockets, const hostile *one) {
  dlrs_error error = {.struct_size = sizeof error, .message = MALFORMED_REASON};
  DLManagedTensorVersioned *tensor = NULL;
  description what;
  struct rlimit before, limit;
  const int memory = make(one);
  check(memory >= 0 && post(sockets[0], one, memory), one->name, "sent", "no");
  const int open_before = open_descriptors(); /* opendir's own is the first that is free */
  const int first_free = dup(memory);
  close(first_free);
  getrlimit(RLIMIT_NOFILE, &before);
  limit = before;
  limit.rlim_cur = (rlim_t)(first_free + one->limit);
  setrlimit(RLIMIT_NOFILE, &limit);
  const int taken = take(sockets[1], &what);
  setrlimit(RLIMIT_NOFILE, &before);
  bool accepted = false;
  if (taken >= 0) {
    check(fcntl(taken, F_GETFD) == FD_CLOEXEC, one->name, "closed on exec", "no");
    error.message[0] = '\0';
    accepted = wrap(taken, &what, &tensor, &error) == DLRS_OK;
    close(taken);
    if (accepted) {
      check(one->kind == MEMFD && ftruncate(memory, 0) != 0, one->name, "truncated", "it was");
      volatile const char *bytes = tensor->dl_tensor.data;
      for (int i = 0; i < NBYTES; ++i) (void)bytes[i];
    }
    dlrs_release(tensor);
  }
  check(taken != NO_MORE, one->name, "received", "no");
  check(accepted == (one->reason == NULL), one->name, accepted ? "accepted" : "refused",
        error.message);
  check(!one->reason || (error.message[0] && strstr(error.message, one->reason)), one->name,
        "another reason", error.message);
  check(open_descriptors() == open_before, one->name, "descriptors", "some are left open");
  close(memory);
}

int main(void) {
  const size_t count = sizeof MESSAGES / sizeof *MESSAGES;
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) return 2;
  for (size_t i = 0; i < count; ++i) receive(sockets, &MESSAGES[i]);

  /* All of them again, to the consumer of the example: it answers each one. */
  for (size_t i = 0; i < count; ++i) {
    const int memory = make(&MESSAGES[i]);
    check(post(sockets[0], &MESSAGES[i], memory), MESSAGES[i].name, "sent again", "no");
    close(memory);
  }
  shutdown(sockets[0], SHUT_WR); /* no more messages */
  const int before = open_descriptors();
  fflush(stdout);
  const int out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);
  dup2(null, STDOUT_FILENO);
  const int status = consume(sockets[1]);
  dup2(out, STDOUT_FILENO);
  close(out);
  close(null);
  check(status == 0, "the consumer", "returned", "not 0");
  check(open_descriptors() == before, "the consumer", "descriptors", "some are left open");
  char done[2];
  for (size_t i = 0; i < count; ++i)
    check(recv(sockets[0], done, sizeof done, MSG_DONTWAIT) == 1, MESSAGES[i].name, "answer",
          "none");
  printf("hostile: %zu messages, %d checks, %d failed\n", count, checks, failures);
  return failures != 0;
}
