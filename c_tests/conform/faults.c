/* The conformance kit finds faults: a library with one planted fault for each row, and each rule
 * fails at least once; the same library without a fault passes all. Ends with "N passed, N
 * failed". */
#include <stdio.h>
#include <string.h>

#include "subject.h"

static const struct {
  const char *fault, *rules;
} FAULTS[] = {
    {"is of version 0.8", "P10"},
    {"strides are NULL", "P11"},
    {"has an unknown flag", "P12"},
    {"is IS_COPIED", "P13"},
    {"a copy does not say so", "P15"},
    {"a copy shares", "P16 R11"},
    {"forgets READ_ONLY", "P19 R01"},
    {"exports READ_ONLY as legacy", "P20"},
    {"leaks", "P32 C01 C04"},
    {"borrows", "P34 P35 R03 R09"},
    {"frees on one thread only", "P36"},
    {"frees no later than the tensor", "P34 P35 P38"},
    {"begins at the second element", "P41 P44 R04 R08"},
    {"has 1000000 dimensions", "P34 P35 P41"},
    {"has no shape", "P34 P35 P41"},
    {"has no data", "P34 P35 P41"},
    {"has a negative extent", "P34 P35 P41"},
    {"has a wild extent", "P34 P35 P41"},
    {"has a wild stride", "P34 P35 P41"},
    {"has a wild byte_offset", "P34 P35 P41"},
    {"has no shape to borrow", "X05 X06"},
    {"legacy is another", "P42"},
    {"data where nothing is", "P43"},
    {"a scalar has a dimension", "P44"},
    {"half is bfloat16", "P51"},
    {"bool is uint8", "P52"},
    {"is on device 1", "P54"},
    {"is aligned to 16 bytes", "P55"},
    {"shares its shape", "P56"},
    {"exports 1000 times", "P57 P64"},
    {"exports copies", "P58"},
    {"views begin where their base does", "P47 P48"},
    {"views are 0 bytes apart", "P45 P46 P47 P48 P49"},
    {"views borrow", "P62 C50"},
    {"strides count bytes", "P63 P41"},
    {"frees three times at 1000", "P64"},
    {"exports compact strides", "R04"},
    {"keeps IS_COPIED", "R02"},
    {"forgets PADDED", "R13"},
    {"frees twice", "C01 C04"},
    {"never frees", "C01 C04"},
    {"frees legacy tensors twice", "C05"},
    {"frees twice on other threads", "C51 C62"},
    {"forgets each hundredth", "C54 C62"},
    {"frees twice with its objects", "X05"},
    {"frees early", "C04 R03 R06 R09"},
    {"copies", "C02"},
    {"refuses legacy tensors", "C05"},
    {"takes any version", "C10"},
    {"takes the second element first", "C11 C16 C61 C64 R06"},
    {"takes any flag", "C12"},
    {"calls a NULL deleter", "C14 C15"},
    {"needs the context", "C16"},
    {"NULL strides are 0", "C17 C18"},
    {"ignores byte_offset", "C19 C20 R08"},
    {"a scalar is a vector", "C21"},
    {"nothing is a scalar", "C22 C23"},
    {"minds the strides of extents of 1", "C24"},
    {"ignores strides", "C25 C26 C27 C28 R04"},
    {"rounds addresses", "C29 C30"},
    {"all is float32", "C33"},
    {"integers are unsigned", "C33"},
    {"integers are signed", "C33"},
    {"takes any dtype", "C34 C37"},
    {"ignores lanes", "C35"},
    {"takes any lanes", "C36"},
    {"dies of ndim", "C38"},
    {"frees what it refuses twice", "C10"},
    {"takes any extent", "C40 C41"},
    {"takes data NULL", "C42"},
    {"takes any device", "C43"},
    {"writes the struct", "C49"},
    {"takes any stride", "C58"},
    {"dies of shape NULL", "C59"},
    {"4 bits are 8", "C60"},
    {"extents have 32 bits", "C66"},
    {"has a table of version 2", "X01"},
    {"lacks a function", "X02"},
    {"borrows another element", "X06"},
    {"borrows no strides", "X06"},
    {"has no streams", "X07"},
    {"allocates nothing", "X11"},
};

static int passed, failed;

static int check(int ok, const char *what, const char *rule, const char *said) {
  passed += ok;
  failed += !ok;
  if (!ok) printf("FAIL  %s: %s %s\n", what, rule, said);
  return ok;
}

static dlrs_conform_verdict judge(uint32_t index) {
  dlrs_conform_verdict verdict;
  memset(&verdict, 0, sizeof verdict);
  if (dlrs_conform_judge(mini_subject, index, 60, NULL, &verdict) != 0)
    check(0, mini_fault, dlrs_conform_rule_at(index)->id, "is not judged");
  return verdict;
}

/* Whether the fault breaks the rule. */
static int broken(const char *fault, uint32_t index) {
  mini_fault = fault;
  return judge(index).outcome >= DLRS_CONFORM_FAIL;
}

int main(void) {
  char seen[4096] = " ";
  const dlrs_conform_rule *rule;
  dlrs_conform_verdict verdict;
  for (uint32_t i = 0; i < dlrs_conform_count(); i++) {
    verdict = judge(i);
    check(verdict.outcome <= DLRS_CONFORM_NOTE, "no fault", dlrs_conform_rule_at(i)->id,
          verdict.text);
  }
  for (size_t f = 0; f < sizeof FAULTS / sizeof FAULTS[0]; f++) {
    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s ", FAULTS[f].rules);
    for (uint32_t i = 0; i < dlrs_conform_count(); i++) {
      rule = dlrs_conform_rule_at(i);
      if (strncmp(FAULTS[f].fault, "has ", 4) == 0 || strncmp(FAULTS[f].fault, "lacks", 5) == 0) {
        mini_fault = FAULTS[f].fault;
        check(judge(i).outcome != DLRS_CONFORM_CRASH, FAULTS[f].fault, rule->id, "dies of it");
      }
      if (strstr(FAULTS[f].rules, rule->id) != NULL)
        check(broken(FAULTS[f].fault, i), FAULTS[f].fault, rule->id, "is not seen");
      else if (strstr("P34 P35", rule->id) != NULL || /* lifetimes, and what C04 and C10 explain */
               (strstr("C02 C10 C17 C34 C40 C59 C62", rule->id) != NULL &&
                (strstr(FAULTS[f].rules, "C04") || strstr(FAULTS[f].rules, "C10"))))
        check(!broken(FAULTS[f].fault, i), FAULTS[f].fault, rule->id, "is not to blame");
    }
  }
  for (uint32_t i = 0; i < dlrs_conform_count(); i++)
    check(strstr(seen, dlrs_conform_rule_at(i)->id) != NULL, "no fault breaks",
          dlrs_conform_rule_at(i)->id, "");
  /* Invalid arguments. */
  mini_fault = "";
  check(dlrs_conform_rule_at(dlrs_conform_count()) == NULL, "a rule behind the last", "", "");
  check(dlrs_conform_check(NULL, 0, &verdict) == -1, "no subject", "", "");
  check(dlrs_conform_check(mini_subject(), 0, NULL) == -1, "no verdict", "", "");
  check(dlrs_conform_check(mini_subject(), dlrs_conform_count(), &verdict) == -1, "no rule", "",
        "");
  check(dlrs_conform_judge(NULL, 0, 1, NULL, &verdict) == -1, "no getter", "", "");
  for (uint32_t i = 0; i < dlrs_conform_count(); i++) { /* an empty subject */
    dlrs_conform_subject nothing;
    memset(&nothing, 0, sizeof nothing);
    nothing.struct_size = sizeof nothing.struct_size;
    check(dlrs_conform_check(&nothing, i, &verdict) == 0 && verdict.outcome == DLRS_CONFORM_SKIP,
          "nothing to judge", dlrs_conform_rule_at(i)->id, verdict.text);
    nothing.struct_size = sizeof nothing;
    nothing.exchange_api = mini_subject()->exchange_api;
    nothing.object = mini_subject()->object;
    nothing.object_drop = mini_subject()->object_drop;
    check(dlrs_conform_check(&nothing, i, &verdict) == 0 &&
              verdict.outcome == (dlrs_conform_rule_at(i)->id[0] == 'X' ? DLRS_CONFORM_PASS
                                                                         : DLRS_CONFORM_SKIP),
          "the table alone", dlrs_conform_rule_at(i)->id, verdict.text);
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
