/*
 * One tensor, two processes: the memory is a sealed memfd, and a description of the tensor is sent
 * over a socket, with the memory's file descriptor. Each side wraps its mapping; no byte of the
 * data is copied. The consumer does not trust the producer. A process starts itself again as the
 * consumer.
 */
#define _GNU_SOURCE /* memfd_create, F_GET_SEALS */
#include <dlpack/dlpack_rs.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_NDIM = 8 };

/* A tensor without pointers: addresses of one process are invalid in another. */
typedef struct {
  DLDataType dtype;
  int32_t ndim;
  uint64_t byte_offset; /* from the start of the memory */
  int64_t shape[MAX_NDIM], strides[MAX_NDIM];
} description;

typedef struct {
  void *base;
  size_t nbytes;
} mapping;

static void unmap(void *context) {
  mapping *map = context;
  munmap(map->base, map->nbytes);
  free(map);
}

/* The tensor of a description in shared memory, which is unmapped when the last reference to the
 * tensor goes. */
static dlrs_status wrap(int memory, const description *theirs, DLManagedTensorVersioned **out,
                        dlrs_error *error) {
  description what = *theirs; /* what is checked is what is used */
  const int fixed = F_SEAL_SHRINK | F_SEAL_GROW, seals = fcntl(memory, F_GET_SEALS);
  const char *problem = "out of host memory";
  struct stat about;
  *out = NULL;
  mapping *map = malloc(sizeof *map);
  if (map == NULL) goto refused;
  problem = "the elements are handles, which are valid in one process only";
  if (what.dtype.code == kDLOpaqueHandle) goto refused;
  problem = "the memory could still be truncated, and reading it would raise SIGBUS: seal its size";
  if (seals < 0 || (seals & fixed) != fixed) goto refused;
  problem = "the memory is empty"; /* its size is final now that the seals are known */
  if (fstat(memory, &about) != 0 || about.st_size <= 0) goto refused;
  problem = "the memory cannot be mapped for reading and writing";
  map->nbytes = (size_t)about.st_size;
  map->base = mmap(NULL, map->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (map->base == MAP_FAILED) goto refused;

  const DLTensor tensor = {
      .data = map->base,
      .device = {kDLCPU, 0},
      .ndim = what.ndim > MAX_NDIM ? -1 : what.ndim, /* more than we were sent */
      .dtype = what.dtype,
      .shape = what.shape,
      .strides = what.strides,
      .byte_offset = what.byte_offset,
  };
  dlrs_status status = dlrs_validate_within(&tensor, 0, map->base, map->nbytes, error);
  if (status == DLRS_OK) status = dlrs_tensor_wrap(&tensor, 0, unmap, map, out, error);
  if (status != DLRS_OK) unmap(map);
  return status;
refused:
  free(map);
  snprintf(error->message, sizeof error->message, "%s", problem);
  return DLRS_BAD_ARG;
}

/* A description and the descriptor of its memory, in one message. */
static int give(int socket, const description *what, int memory) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {.bytes = {0}};
  struct iovec body = {(void *)what, sizeof *what};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof memory);
  memcpy(CMSG_DATA(rights), &memory, sizeof memory);
  return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *what ? 0 : -1;
}

/* The next description and the descriptor of its memory, which the caller closes; NO_MORE, or
 * MALFORMED for any other message, all of whose descriptors are closed. */
enum { NO_MORE = -1, MALFORMED = -2 };
static int take(int socket, description *what) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))]; /* with padding: there may be room for two */
  } control;
  struct iovec body = {what, sizeof *what};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  int memory = -1, descriptors = 0;
  const ssize_t nbytes = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (nbytes < 0) return NO_MORE;
  for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof memory <= one->cmsg_len; at += sizeof memory) {
      if (descriptors++ > 0) close(memory);
      memcpy(&memory, (const char *)one + at, sizeof memory);
    }
  }
  if (descriptors == 1 && nbytes == (ssize_t)sizeof *what &&
      !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
    return memory;
  if (descriptors > 0) close(memory);
  return nbytes == 0 && descriptors == 0 ? NO_MORE : MALFORMED;
}

static int print(const char *who, const DLManagedTensorVersioned *tensor, dlrs_error *error) {
  char text[512];
  if (dlrs_managed_to_string(tensor, NULL, text, sizeof text, NULL, error) != DLRS_OK) return -1;
  printf("%s: %s\n", who, text);
  return fflush(stdout);
}

/* Imports tensors until there are no more, writes 100 into the first column, and reports each. */
static int consume(int socket) {
  const double hundred = 100;
  const DLDataType float64 = {kDLFloat, 64, 1};
  description what;
  int memory;
  while ((memory = take(socket, &what)) != NO_MORE) {
    dlrs_error error = {.struct_size = sizeof error,
                        .message = "the message is not one description with one descriptor"};
    DLManagedTensorVersioned *tensor = NULL, *column = NULL;
    if (memory == MALFORMED || wrap(memory, &what, &tensor, &error) != DLRS_OK ||
        print("consumer", tensor, &error) != 0 ||
        dlrs_view_select(tensor, 1, 0, &column, &error) != DLRS_OK ||
        dlrs_fill(column, &hundred, float64, NULL, &error) != DLRS_OK)
      printf("consumer: refused: %s\n", error.message);
    fflush(stdout);
    dlrs_release(column); /* a view references the tensor, the tensor the mapping */
    dlrs_release(tensor);
    if (memory >= 0) close(memory); /* the mapping stays without it */
    if (send(socket, "", 1, MSG_NOSIGNAL) != 1) return 1;
  }
  return 0;
}

static int produce(int socket) {
  dlrs_error error = {.struct_size = sizeof error};
  char done;
  /* The rows of a 3 x 4 matrix from the last to the first, every second column. */
  description what = {.dtype = {kDLFloat, 32, 1}, .ndim = 2, .byte_offset = 8 * sizeof(float),
                      .shape = {3, 2}, .strides = {-4, 2}};
  // [quote:seal]
  int memory = memfd_create("tensor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0 || ftruncate(memory, 12 * sizeof(float)) != 0 ||
      fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    // [/quote]
    perror("shared memory");
    return 1;
  }
  DLManagedTensorVersioned *tensor = NULL;
  if (wrap(memory, &what, &tensor, &error) != DLRS_OK) goto failed;
  float *values = tensor->dl_tensor.data;
  for (int i = 0; i < 12; ++i) values[i] = (float)i;

  if (print("producer", tensor, &error) != 0) goto failed;
  if (give(socket, &what, memory) != 0 || read(socket, &done, 1) != 1) goto failed;
  if (print("producer", tensor, &error) != 0) goto failed;

  description lie = what; /* one row too many: before the memory's start */
  lie.shape[0] = 4;
  if (give(socket, &lie, memory) != 0 || read(socket, &done, 1) != 1) goto failed;
  dlrs_release(tensor);
  close(memory);
  return 0;
failed:
  fprintf(stderr, "producer: %s\n", error.message);
  return 1;
}

int main(int argc, char **argv) {
  int sockets[2], status;
  char number[16];
  if (argc == 2) return consume(atoi(argv[1]));
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) return 1;
  snprintf(number, sizeof number, "%d", sockets[1]);
  const pid_t consumer = fork();
  if (consumer == 0) {
    close(sockets[0]);
    execl(argv[0], argv[0], number, (char *)NULL);
    _exit(127);
  }
  close(sockets[1]);
  const int failed = produce(sockets[0]);
  close(sockets[0]); /* the consumer's end: no more messages */
  if (consumer < 0 || waitpid(consumer, &status, 0) != consumer) return 1;
  return failed || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
