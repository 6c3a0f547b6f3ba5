package simd

//go:generate sh -c "cd asm && go run ./zeros -out ../zeros_amd64.s -stubs ../zeros_stubs_amd64.go -pkg simd"
