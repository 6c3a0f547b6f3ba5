#include "textflag.h"

// A step is 256 bytes. What will be written is asked for ahead, and for writing: the
// peer has read it since we last wrote it, and whether the other core must give it up is
// found out then, and not when the store is stuck on it.
#define AHEAD 2048

// The assembler does not know this one: prefetchw at(DI).
#define PREFETCHW(at) WORD $0x0d0f; BYTE $0x8f; LONG $at

#define STEP(sum) \
	PREFETCHW(AHEAD+0)   \
	PREFETCHW(AHEAD+64)  \
	PREFETCHW(AHEAD+128) \
	PREFETCHW(AHEAD+192) \
	VMOVUPS   0(DI), Y0     \
	VMOVUPS   32(DI), Y1    \
	VMOVUPS   64(DI), Y2    \
	VMOVUPS   96(DI), Y3    \
	VMOVUPS   128(DI), Y4   \
	VMOVUPS   160(DI), Y5   \
	VMOVUPS   192(DI), Y6   \
	VMOVUPS   224(DI), Y7   \
	sum       0(SI), Y0, Y0   \
	sum       32(SI), Y1, Y1  \
	sum       64(SI), Y2, Y2  \
	sum       96(SI), Y3, Y3  \
	sum       128(SI), Y4, Y4 \
	sum       160(SI), Y5, Y5 \
	sum       192(SI), Y6, Y6 \
	sum       224(SI), Y7, Y7 \
	VMOVUPS   Y0, 0(DI)     \
	VMOVUPS   Y1, 32(DI)    \
	VMOVUPS   Y2, 64(DI)    \
	VMOVUPS   Y3, 96(DI)    \
	VMOVUPS   Y4, 128(DI)   \
	VMOVUPS   Y5, 160(DI)   \
	VMOVUPS   Y6, 192(DI)   \
	VMOVUPS   Y7, 224(DI)   \
	ADDQ      $256, DI      \
	ADDQ      $256, SI

// func addSteps32(dst, src *byte, steps int)
TEXT ·addSteps32(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ steps+16(FP), CX

loop:
	STEP(VADDPS)
	DECQ CX
	JNZ  loop
	VZEROUPPER
	RET

// func addSteps64(dst, src *byte, steps int)
TEXT ·addSteps64(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ steps+16(FP), CX

loop:
	STEP(VADDPD)
	DECQ CX
	JNZ  loop
	VZEROUPPER
	RET
