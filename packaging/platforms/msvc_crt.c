/* Replaces the two symbols of Microsoft's msvcrt.lib that a library needs, so that one can be
 * linked without it: the marker of floating point use, and the probe of large stack frames. */
int _fltused = 0x9875;

/* rax has the size of the frame; only r10, r11 and the flags may change. Touches every page down to
 * the frame's end in order, because the guard page below the stack moves one at a time. */
__asm__(
    ".globl __chkstk\n"
    "__chkstk:\n"
    "  leaq 8(%rsp), %r11\n"
    "  movq %rax, %r10\n"
    "1:\n"
    "  cmpq $4096, %r10\n"
    "  jbe 2f\n"
    "  subq $4096, %r11\n"
    "  testb %al, (%r11)\n"
    "  subq $4096, %r10\n"
    "  jmp 1b\n"
    "2:\n"
    "  subq %r10, %r11\n"
    "  testb %al, (%r11)\n"
    "  retq\n");
