/*
 * One tensor, two processes: the memory is POSIX shared memory, and a description of the tensor is
 * sent over a socket, with the memory's file descriptor. Each side wraps its mapping; no byte of
 * the data is copied. A process starts itself again as the consumer.
 */
#define _POSIX_C_SOURCE 200809L
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

// [quote:wrap]
/* The tensor of a description in shared memory, which is unmapped when the last reference to the
 * tensor goes. What the other process says is not trusted: it must lie within the memory. */
static dlrs_status wrap(int memory, description *what, DLManagedTensorVersioned **out,
                        dlrs_error *error) {
  struct stat about;
  *out = NULL;
  mapping *map = malloc(sizeof *map);
  if (map == NULL || fstat(memory, &about) != 0 || about.st_size <= 0) goto failed;
  map->nbytes = (size_t)about.st_size;
  map->base = mmap(NULL, map->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  if (map->base == MAP_FAILED) goto failed;

  const DLTensor tensor = {
      .data = map->base,
      .device = {kDLCPU, 0},
      .ndim = what->ndim > MAX_NDIM ? -1 : what->ndim, /* more than we were sent */
      .dtype = what->dtype,
      .shape = what->shape,
      .strides = what->strides,
      .byte_offset = what->byte_offset,
  };
  dlrs_status status = dlrs_validate_within(&tensor, 0, map->base, map->nbytes, error);
  if (status == DLRS_OK) status = dlrs_tensor_wrap(&tensor, 0, unmap, map, out, error);
  if (status != DLRS_OK) unmap(map);
  return status;
failed:
  free(map);
  snprintf(error->message, sizeof error->message, "the shared memory cannot be mapped");
  return DLRS_BAD_ARG;
}
// [/quote]

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
  return sendmsg(socket, &message, 0) == (ssize_t)sizeof *what ? 0 : -1;
}

static int take(int socket, description *what) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct iovec body = {what, sizeof *what};
  struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1, .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  int memory;
  if (recvmsg(socket, &message, 0) != (ssize_t)sizeof *what) return -1;
  const struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  if (rights == NULL || rights->cmsg_type != SCM_RIGHTS) return -1;
  memcpy(&memory, CMSG_DATA(rights), sizeof memory);
  return memory;
}

static int print(const char *who, const DLManagedTensorVersioned *tensor, dlrs_error *error) {
  char text[512];
  if (dlrs_managed_to_string(tensor, NULL, text, sizeof text, NULL, error) != DLRS_OK) return -1;
  printf("%s: %s\n", who, text);
  return fflush(stdout);
}

/* Imports tensors until there are no more, writes 100 into the first column, and reports each. */
static int consume(int socket) {
  dlrs_error error = {.struct_size = sizeof error};
  description what;
  int memory;
  while ((memory = take(socket, &what)) >= 0) {
    DLManagedTensorVersioned *tensor = NULL, *column = NULL;
    const double hundred = 100;
    const DLDataType float64 = {kDLFloat, 64, 1};
    if (wrap(memory, &what, &tensor, &error) != DLRS_OK) {
      printf("consumer: refused: %s\n", error.message);
      fflush(stdout);
    } else if (print("consumer", tensor, &error) != 0 ||
               dlrs_view_select(tensor, 1, 0, &column, &error) != DLRS_OK ||
               dlrs_fill(column, &hundred, float64, NULL, &error) != DLRS_OK) {
      fprintf(stderr, "consumer: %s\n", error.message);
      return 1;
    }
    dlrs_release(column); /* a view references the tensor, the tensor the mapping */
    dlrs_release(tensor);
    close(memory); /* the mapping stays without it */
    if (write(socket, "", 1) != 1) return 1;
  }
  return 0;
}

static int produce(int socket) {
  dlrs_error error = {.struct_size = sizeof error};
  char name[64], done;
  /* The rows of a 3 x 4 matrix from the last to the first, every second column. */
  description what = {.dtype = {kDLFloat, 32, 1}, .ndim = 2, .byte_offset = 8 * sizeof(float),
                      .shape = {3, 2}, .strides = {-4, 2}};
  snprintf(name, sizeof name, "/dlpack_rs_example_%ld", (long)getpid());
  int memory = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (memory < 0 || shm_unlink(name) != 0 || ftruncate(memory, 12 * sizeof(float)) != 0) {
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
