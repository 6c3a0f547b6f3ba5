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

// func prefetchUnits(a *int32, n int)
TEXT ·prefetchUnits(SB), NOSPLIT, $0-16
	MOVQ a+0(FP), DI
	MOVQ n+8(FP), CX

next:
	PREFETCHT0 0(DI)
	PREFETCHT0 64(DI)
	ADDQ $128, DI
	DECQ CX
	JNZ  next
	RET

// func quantiseFours(lanes *int32, x *float64, scale float64, n int)
TEXT ·quantiseFours(SB), NOSPLIT, $0-32
	MOVQ lanes+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSD scale+16(FP), Y0
	MOVQ n+24(FP), CX

four:
	VMULPD     (SI), Y0, Y1
	VCVTPD2DQY Y1, X1
	VMOVDQU    X1, (DI)
	ADDQ       $32, SI
	ADDQ       $16, DI
	DECQ       CX
	JNZ        four
	VZEROUPPER
	RET

// func numberFours(x *float64, lanes *int32, scale float64, n int)
TEXT ·numberFours(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), DI
	MOVQ lanes+8(FP), SI
	VBROADCASTSD scale+16(FP), Y0
	MOVQ n+24(FP), CX

four:
	VCVTDQ2PD (SI), Y1
	VMULPD    Y1, Y0, Y1
	VMOVUPD   Y1, (DI)
	ADDQ      $16, SI
	ADDQ      $32, DI
	DECQ      CX
	JNZ       four
	VZEROUPPER
	RET
