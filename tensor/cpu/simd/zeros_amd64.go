package simd

//go:generate sh -c "cd asm && go run ./zeros -out ../zeros_amd64.s -stubs ../zeros_stubs_amd64.go -pkg simd"

// This is the last file of the package that generates: sums.txt gets the digests of all generators and of what they
// wrote, which a test compares.
//
//go:generate sh -c "export LC_ALL=C; sha256sum asm/*/*.go asm/go.mod asm/go.sum *_amd64.s *_stubs_amd64.go >asm/sums.txt"
