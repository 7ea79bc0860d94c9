/* The runner: a process for each rule, and reports. POSIX.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dlpack_rs_conform.h"

#define NAME_BYTES 100
#define NO_SUBJECT 97

static const char *const OUTCOMES[] = {"pass", "note", "skip", "fail", "crash", "hang"};

typedef struct answer {
  dlrs_conform_verdict verdict;
  char name[NAME_BYTES];
} answer;

static void judge_here(dlrs_conform_getter *get, uint32_t index, int out) {
  const dlrs_conform_subject *subject;
  answer a;
  int null = open("/dev/null", O_WRONLY);
  if (null >= 0) dup2(null, 1); /* what the library prints is no report */
  subject = get();
  if (subject == NULL) _exit(NO_SUBJECT);
  memset(&a, 0, sizeof a);
  snprintf(a.name, sizeof a.name, "%s %s", subject->name == NULL ? "library" : subject->name,
           subject->version == NULL ? "" : subject->version);
  if (null >= 0) dup2(null, 2); /* hides messages of a crash */
  if (dlrs_conform_check(subject, index, &a.verdict) != 0) _exit(NO_SUBJECT);
  if (write(out, &a, sizeof a) != (ssize_t)sizeof a) _exit(1);
  if (dlrs_conform_rule_at(index)->ends && a.verdict.outcome == DLRS_CONFORM_PASS) exit(0);
  _exit(0);
}

static int64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads until the other end is closed, at the latest when its process ends: 0, or 1 after a
 * timeout. */
static int read_answer(int from, answer *a, size_t *size, int64_t end) {
  for (;;) {
    struct pollfd one;
    int64_t left = end - milliseconds();
    ssize_t got;
    char surplus;
    one.fd = from;
    one.events = POLLIN;
    one.revents = 0;
    if (left < 0) left = 0;
    if (poll(&one, 1, (int)left) == 0) return 1;
    if (*size < sizeof *a)
      got = read(from, (char *)a + *size, sizeof *a - *size);
    else
      got = read(from, &surplus, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return 0;
    if (got > 0 && *size < sizeof *a) *size += (size_t)got;
  }
}

int32_t dlrs_conform_judge(dlrs_conform_getter *get, uint32_t index, uint32_t seconds, char *name,
                           dlrs_conform_verdict *verdict) {
  int ends[2], status = 0, late;
  answer a;
  size_t size = 0;
  pid_t child;
  if (get == NULL || verdict == NULL || index >= dlrs_conform_count() || pipe(ends) != 0) return -1;
  fflush(NULL);
  child = fork();
  if (child == 0) {
    close(ends[0]);
    judge_here(get, index, ends[1]);
  }
  close(ends[1]);
  late = child < 0 ? 0 : read_answer(ends[0], &a, &size, milliseconds() + (int64_t)seconds * 1000);
  close(ends[0]);
  if (child < 0) return -1;
  if (late) kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!late && WIFEXITED(status) && WEXITSTATUS(status) == NO_SUBJECT && size == 0) return -1;
  memset(verdict, 0, sizeof *verdict);
  if (size == sizeof a && name != NULL) memcpy(name, a.name, sizeof a.name);
  if (late) {
    verdict->outcome = DLRS_CONFORM_HANG;
    snprintf(verdict->text, sizeof verdict->text, "no end within %u s", (unsigned)seconds);
  } else if (WIFSIGNALED(status)) {
    verdict->outcome = DLRS_CONFORM_CRASH;
    snprintf(verdict->text, sizeof verdict->text, "signal %d: %s", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  } else if (size != sizeof a || WEXITSTATUS(status) != 0) {
    verdict->outcome = DLRS_CONFORM_CRASH;
    snprintf(verdict->text, sizeof verdict->text, "exit status %d", WEXITSTATUS(status));
  } else {
    *verdict = a.verdict;
  }
  return 0;
}

/* ---- the program ----------------------------------------------------------------------------*/

typedef struct options {
  int json, list;
  const char *select, *known;
  uint32_t seconds;
} options;

static int fits(const dlrs_conform_rule *rule, const char *patterns) {
  while (patterns != NULL && *patterns != 0) {
    size_t length = strcspn(patterns, ",");
    char one[32];
    snprintf(one, sizeof one, "%.*s", (int)length, patterns);
    if (fnmatch(one, rule->id, 0) == 0 || strcmp(one, rule->severity) == 0) return 1;
    patterns += length + (patterns[length] == ',');
  }
  return 0;
}

/* Reads the identifiers of known violations, each between blanks: the first word of a line, which
 * may be of a rule that the Python kit alone has. 0, or the exit status. */
static int read_known(const char *path, char *known, size_t size) {
  FILE *file = fopen(path, "r");
  char line[512], word[32] = "";
  int fits = 1;
  if (file == NULL) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return 2;
  }
  while (fits && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, " %31[^# \t\r\n]", word) != 1) continue;
    fits = fnmatch("[CDPRX][0-9][0-9]", word, 0) == 0;
    if (fits && strstr(known, word) == NULL && strlen(known) + 5 < size)
      strcat(strcat(known, word), " ");
  }
  fclose(file);
  if (!fits) fprintf(stderr, "%s: there is no rule '%s'; --list shows all\n", path, word);
  return fits ? 0 : 2;
}

static void string(const char *text) {
  putchar('"');
  for (; *text != 0; text++) {
    if (*text == '"' || *text == '\\') putchar('\\');
    if ((unsigned char)*text < ' ')
      printf("\\u%04x", *text);
    else
      putchar(*text);
  }
  putchar('"');
}

static void report(const options *o, const dlrs_conform_rule *rule, const dlrs_conform_verdict *v,
                   int known, int first) {
  if (o->json) {
    printf("%s\n  {\"id\": \"%s\", \"severity\": \"%s\", \"source\": ", first ? "" : ",", rule->id,
           rule->severity);
    string(rule->source);
    printf(", \"rule\": ");
    string(rule->text);
    printf(", \"outcome\": \"%s\", \"text\": ", OUTCOMES[v->outcome]);
    string(v->text);
    printf(", \"known\": %s}", known ? "true" : "false");
  } else if (v->outcome >= DLRS_CONFORM_FAIL) {
    printf("%-5s %s %-6s %s: %s\n", known ? "known" : OUTCOMES[v->outcome], rule->id,
           rule->severity, rule->text, v->text);
  }
}

/* Judges the rules that are selected, or lists them: the exit status. */
static int judge_all(dlrs_conform_getter *get, const options *o, const char *ids) {
  unsigned counts[6] = {0}, violations = 0, gone = 0, judged = 0;
  char name[NAME_BYTES] = "library";
  if (o->json && !o->list) printf("{\"checks\": [");
  for (uint32_t i = 0; i < dlrs_conform_count(); i++) {
    const dlrs_conform_rule *rule = dlrs_conform_rule_at(i);
    dlrs_conform_verdict v;
    int is;
    if (o->select != NULL && !fits(rule, o->select)) continue;
    if (o->list) {
      printf("%s %-6s %s\n       %s %s\n", rule->id, rule->severity, rule->text, rule->source,
             rule->url);
      continue;
    }
    if (dlrs_conform_judge(get, i, o->seconds, name, &v) != 0) {
      fprintf(stderr, "there is no subject to be judged\n");
      return 2;
    }
    is = strstr(ids, rule->id) != NULL;
    report(o, rule, &v, is, judged++ == 0);
    counts[v.outcome]++;
    if (v.outcome >= DLRS_CONFORM_FAIL && strcmp(rule->severity, "INFO") != 0 && !is) violations++;
    if (is && (v.outcome == DLRS_CONFORM_PASS || v.outcome == DLRS_CONFORM_NOTE)) {
      fprintf(stderr, "%s is known, and passes: take it out of %s\n", rule->id, o->known);
      gone++;
    }
  }
  if (o->list) return 0;
  if (o->json) {
    printf("\n], \"library\": ");
    string(name);
    printf("}\n");
  } else {
    printf("%s:", name);
    for (int i = 0; i < 6; i++)
      if (counts[i] != 0) printf(" %u %s", counts[i], OUTCOMES[i]);
    printf("\n");
  }
  if (judged == 0) {
    fprintf(stderr, "no rule fits %s\n", o->select);
    return 2;
  }
  return violations != 0 || gone != 0;
}

int dlrs_conform_main(dlrs_conform_getter *get, int argc, char **argv) {
  options o = {0, 0, NULL, NULL, 60};
  char known[4096] = "";
  for (int i = 1; i < argc; i++) {
    const char *one = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(one, "--json") == 0) {
      o.json = 1;
    } else if (strcmp(one, "--list") == 0) {
      o.list = 1;
    } else if (strcmp(one, "--select") == 0 && value != NULL) {
      o.select = argv[++i];
    } else if (strcmp(one, "--known") == 0 && value != NULL) {
      o.known = argv[++i];
    } else if (strcmp(one, "--seconds") == 0 && value != NULL && atoi(value) > 0) {
      o.seconds = (uint32_t)atoi(argv[++i]);
    } else {
      int help = strcmp(one, "--help") == 0;
      fprintf(help ? stdout : stderr,
              "usage: %s [--json] [--list] [--select P15,C*,MUST] [--known FILE] [--seconds N]\n"
              "Judges how a library keeps the rules of DLPack, each in a process of its own.\n"
              "FILE has known violations: identifiers, one a line, a reason may follow.\n"
              "Exit status: 0 no violation but known ones, 1 violations, or known ones that are\n"
              "gone, 2 wrong arguments, or no subject.\n", argv[0]);
      return help ? 0 : 2;
    }
  }
  if (o.known != NULL && read_known(o.known, known, sizeof known) != 0) return 2;
  return judge_all(get, &o, known);
}
