#include "go_asm.h"
#include "textflag.h"

// Bits are taken in until at least 56 are valid.
#define REFILL \
	MOVQ  (SI), AX \
	SHLXQ CX, AX, AX \
	ORQ   AX, BX \
	MOVL  CX, AX \
	SHRL  $3, AX \
	ANDL  $7, AX \
	SUBQ  AX, SI \
	ADDQ  $7, SI \
	ORL   $56, CX

// The lowest bits choose an entry.
#define ENTRY \
	BZHIL R10, BX, AX \
	MOVQ  (DX)(AX*8), R11 \
	TESTQ R11, R11 \
	JS    done

// It becomes eight bytes of output, of which the next entry overwrites those that are
// too many, without a branch that depends on what it is.
#define UNPACK \
	RORXQ   $const_codesAt, R11, AX \
	SHRXQ   AX, BX, R12 \
	SHRXQ   R11, BX, BX \
	SUBL    R11, CX \
	RORXQ   $const_extraAt, R11, AX \
	BZHIQ   AX, R12, R12 \
	MOVQ    R11, AX \
	SHRQ    $const_numberAt, AX \
	ADDQ    AX, R12 \
	MOVQ    DI, AX \
	SUBQ    R12, AX \
	RORXQ   $const_literalsAt, R11, R13 \
	TESTL   $const_isMatch, R11 \
	CMOVQNE (AX), R13 \
	MOVQ    R13, (DI) \
	SHRL    $const_bytesAt, R11 \
	ADDQ    R11, DI

// func unpackPlain(f *inflate, limit, room int)
//
// SI and DI are next and filled as addresses, R8 and R9 where they stop, BX the bits,
// DX the table, R10 what of the bits is a place in it. CX is the count; what is above its lowest six bits means nothing.
// Before each round it is at least symbolBits: an entry is looked up while more bits
// are taken in.
TEXT ·unpackPlain(SB), NOSPLIT, $0-24
	MOVQ f+0(FP), R15
	MOVQ inflate_in(R15), SI
	MOVQ SI, R8
	ADDQ limit+8(FP), R8
	ADDQ inflate_next(R15), SI
	MOVQ inflate_out(R15), DI
	MOVQ DI, R9
	ADDQ room+16(FP), R9
	ADDQ inflate_filled(R15), DI
	MOVQ inflate_bits(R15), BX
	MOVQ inflate_count(R15), CX
	LEAQ inflate_symbols(R15), DX
	MOVL $const_symbolBits, R10
	REFILL

loop:
	CMPQ  SI, R8
	JGE   done
	CMPQ  DI, R9
	JAE   done
	ENTRY
	REFILL
	UNPACK
	ENTRY
	UNPACK
	JMP   loop

done:
	ANDL $63, CX
	MOVQ BX, inflate_bits(R15)
	MOVQ CX, inflate_count(R15)
	SUBQ inflate_in(R15), SI
	MOVQ SI, inflate_next(R15)
	SUBQ inflate_out(R15), DI
	MOVQ DI, inflate_filled(R15)
	RET
