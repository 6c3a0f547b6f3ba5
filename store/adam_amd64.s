#include "textflag.h"

// One step of Adam on float32 rows with float64 arithmetic, four numbers at a time and nothing fused, so that every
// bit is that of adamRow.

// func adamAVX2(x, m, s *float32, grad *float64, n int, k *adamFactors)
TEXT ·adamAVX2(SB), NOSPLIT, $0-48
	MOVQ x+0(FP), AX
	MOVQ m+8(FP), BX
	MOVQ s+16(FP), CX
	MOVQ grad+24(FP), DX
	MOVQ n+32(FP), SI
	MOVQ k+40(FP), DI
	VBROADCASTSD 0(DI), Y8   // beta1
	VBROADCASTSD 8(DI), Y9   // 1 - beta1
	VBROADCASTSD 16(DI), Y10 // beta2
	VBROADCASTSD 24(DI), Y11 // 1 - beta2
	VBROADCASTSD 32(DI), Y12 // rate
	VBROADCASTSD 40(DI), Y13 // scale
	VBROADCASTSD 48(DI), Y14 // epsilon

next:
	VMOVUPD (DX), Y0
	VCVTPS2PD (BX), Y1
	VCVTPS2PD (CX), Y2
	VMULPD Y8, Y1, Y1
	VMULPD Y9, Y0, Y3
	VADDPD Y3, Y1, Y1        // mean
	VMULPD Y11, Y0, Y3
	VMULPD Y0, Y3, Y3
	VMULPD Y10, Y2, Y2
	VADDPD Y3, Y2, Y2        // square
	VCVTPD2PSY Y1, X4
	VMOVUPS X4, (BX)
	VCVTPD2PSY Y2, X5
	VMOVUPS X5, (CX)
	VMULPD Y13, Y2, Y2
	VSQRTPD Y2, Y2
	VADDPD Y14, Y2, Y2
	VMULPD Y12, Y1, Y1
	VDIVPD Y2, Y1, Y1
	VCVTPS2PD (AX), Y3
	VSUBPD Y1, Y3, Y3
	VCVTPD2PSY Y3, X4
	VMOVUPS X4, (AX)
	ADDQ $16, AX
	ADDQ $16, BX
	ADDQ $16, CX
	ADDQ $32, DX
	SUBQ $4, SI
	JNZ next
	VZEROUPPER
	RET

// func addAVX2(sum *float64, grad *float32, n int)
TEXT ·addAVX2(SB), NOSPLIT, $0-24
	MOVQ sum+0(FP), AX
	MOVQ grad+8(FP), BX
	MOVQ n+16(FP), SI

more:
	VCVTPS2PD (BX), Y0
	VADDPD (AX), Y0, Y0
	VMOVUPD Y0, (AX)
	ADDQ $32, AX
	ADDQ $16, BX
	SUBQ $4, SI
	JNZ more
	VZEROUPPER
	RET
