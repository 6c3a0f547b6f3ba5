#include "textflag.h"

// Z0-Z3 hold what has been folded so far, Z8 the multipliers. Each step moves the
// registers forward and adds the next bytes:  acc = lo(acc)*k0 + hi(acc)*k1 + next.
#define FOLD(acc, tmp, next) \
	VPCLMULQDQ $0x00, Z8, acc, tmp \
	VPCLMULQDQ $0x11, Z8, acc, acc \
	VPTERNLOGQ $0x96, next, tmp, acc

// What is sent comes from memory as a rule. The processor by itself looks ahead to the end
// of a page; by a page, from memory, folding is a third faster, and no slower from the cache.
#define AHEAD 4096

// func fold(p *byte, n int, rest *[64]byte, by *[4]uint64)
TEXT ·fold(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ rest+16(FP), DI
	MOVQ by+24(FP), DX
	VBROADCASTI64X2 (DX), Z8

	// The inversion that opens a CRC goes into the first four bytes.
	MOVL  $0xffffffff, AX
	VMOVD AX, X9
	VMOVDQU64 (SI), Z0
	VPXORQ    Z9, Z0, Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3

loop:
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JLT  end
	PREFETCHT0 AHEAD+0(SI)
	PREFETCHT0 AHEAD+64(SI)
	PREFETCHT0 AHEAD+128(SI)
	PREFETCHT0 AHEAD+192(SI)
	FOLD(Z0, Z4, (SI))
	FOLD(Z1, Z5, 64(SI))
	FOLD(Z2, Z6, 128(SI))
	FOLD(Z3, Z7, 192(SI))
	JMP  loop

end:
	// Four registers become one.
	VBROADCASTI64X2 16(DX), Z8
	FOLD(Z0, Z4, Z1)
	FOLD(Z0, Z4, Z2)
	FOLD(Z0, Z4, Z3)
	VMOVDQU64 Z0, (DI)
	VZEROUPPER
	RET
