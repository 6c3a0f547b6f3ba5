#include "textflag.h"

// A sum of two numbers overflowed where its sign differs from both of theirs: Y8 collects
// (x ^ sum) & (y ^ sum), whose highest bits say so.
#define ADD8(at, x, y) \
	VMOVDQU at(DI), x    \
	VMOVDQU at(SI), y    \
	VPADDD  x, y, Y6     \
	VPXOR   x, Y6, x     \
	VPXOR   y, Y6, y     \
	VMOVDQU Y6, at(DI)   \
	VPAND   x, y, x      \
	VPOR    x, Y8, Y8

// func addUnits(a, b *int32, n int) (over bool)
TEXT ·addUnits(SB), NOSPLIT, $0-25
	MOVQ  a+0(FP), DI
	MOVQ  b+8(FP), SI
	MOVQ  n+16(FP), CX
	VPXOR Y8, Y8, Y8

unit:
	ADD8(0, Y0, Y1)
	ADD8(32, Y2, Y3)
	ADD8(64, Y4, Y5)
	ADD8(96, Y0, Y1)
	ADDQ $128, DI
	ADDQ $128, SI
	DECQ CX
	JNZ  unit
	VMOVMSKPS Y8, AX
	TESTL AX, AX
	SETNE over+24(FP)
	VZEROUPPER
	RET
