#include "textflag.h"

// func onBus()
//
// DI signal, SI *siginfo, DX *ucontext, 0(SP) where to return to; on the signal stack.
//
//	if exitOnFault && info.si_code > 0:        the kernel's, not kill(2)'s
//	    for m in mappings[:mappingCount]:
//	        if m.start <= info.si_addr < m.end: if first: write(2, m.text), exit_group(1)
//	goto goHandler
TEXT ·onBus(SB), NOSPLIT|NOFRAME|TOPFRAME, $0-0
	MOVQ ·exitOnFault(SB), AX
	TESTQ AX, AX
	JZ   other
	MOVL 8(SI), AX
	CMPL AX, $0
	JLE  other
	MOVQ 16(SI), AX
	LEAQ ·mappings(SB), R8
	MOVQ ·mappingCount(SB), R9

next:
	TESTQ R9, R9
	JZ    other
	CMPQ  AX, 0(R8)
	JCS   skip
	CMPQ  AX, 8(R8)
	JCS   found

skip:
	ADDQ $32, R8
	DECQ R9
	JMP  next

found:
	MOVQ $1, AX
	XCHGQ AX, ·faulted(SB)
	TESTQ AX, AX
	JNZ  wait          // another thread was first
	MOVQ 16(R8), SI
	MOVQ 24(R8), DX
	MOVQ $2, DI
	MOVQ $1, AX   // write
	SYSCALL
	MOVQ $1, DI
	MOVQ $231, AX // exit_group
	SYSCALL

wait:
	MOVQ $34, AX // pause, until that one ends the process
	SYSCALL
	JMP  wait

other:
	MOVQ ·goHandler(SB), AX
	JMP  AX

// func onBusAddress() uintptr
TEXT ·onBusAddress(SB), NOSPLIT, $0-8
	LEAQ ·onBus(SB), AX
	MOVQ AX, ret+0(FP)
	RET
