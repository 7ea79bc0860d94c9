/* The libraries that the tests of the conformance kit check. */
#ifndef C_TESTS_CONFORM_SUBJECT_H_
#define C_TESTS_CONFORM_SUBJECT_H_

#include "dlpack_rs_conform.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A small library that keeps every rule except for its one fault; "" is none. */
extern const char *mini_fault;
dlrs_conform_getter mini_subject;

#ifdef __cplusplus
}
#endif

#endif /* C_TESTS_CONFORM_SUBJECT_H_ */
