#include "textflag.h"

// func onBus()
//
// R0 signal, R1 *siginfo, R2 *ucontext, R30 where to return to; on the signal stack. See fault_linux_amd64.s.
TEXT ·onBus(SB), NOSPLIT|NOFRAME|TOPFRAME, $0-0
	MOVD ·exitOnFault(SB), R3
	CBZ  R3, other
	MOVW 8(R1), R3
	CMPW $0, R3
	BLE  other
	MOVD 16(R1), R3
	MOVD $·mappings(SB), R4
	MOVD ·mappingCount(SB), R5

next:
	CBZ  R5, other
	MOVD 0(R4), R6
	CMP  R6, R3
	BLO  skip
	MOVD 8(R4), R6
	CMP  R6, R3
	BLO  found

skip:
	ADD $32, R4
	SUB $1, R5
	B   next

found:
	MOVD $·faulted(SB), R6
	MOVD $1, R7

first:
	LDAXR (R6), R3
	STLXR R7, (R6), R8
	CBNZ  R8, first
	CBNZ  R3, wait // another thread was before this one
	MOVD  16(R4), R1
	MOVD 24(R4), R2
	MOVD $2, R0
	MOVD $64, R8 // write
	SVC
	MOVD $1, R0
	MOVD $94, R8 // exit_group
	SVC

wait:
	MOVD $0, R0
	MOVD $0, R1
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	MOVD $73, R8 // ppoll of nothing, until that one ends the process
	SVC
	B    wait

other:
	MOVD ·goHandler(SB), R6
	JMP  (R6)

// func onBusAddress() uintptr
TEXT ·onBusAddress(SB), NOSPLIT, $0-8
	MOVD $·onBus(SB), R3
	MOVD R3, ret+0(FP)
	RET
