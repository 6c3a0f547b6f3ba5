# make demo    the two-minute tour, on generated data
# make test    everything a change must pass; also what CI runs
# make bench   our kernels beside what the machine can do, our wire beside iperf3 and Open MPI, as ratios
# make bench-peers   our epochs and mini-batches beside PyG's and DGL's, as ratios

GO ?= go
BIN := bin/starling
export CGO_ENABLED = 0
export STARLING_PYTHON ?= $(CURDIR)/build/python/bin/python

.PHONY: build static demo test test-go test-tools test-arm64 lint lint-go lint-arm64 fuzz bench bench-peers generate clean

build:
	$(GO) build -trimpath -o $(BIN) ./cmd/starling

# Opening MPI's and METIS's libraries takes the system's loader and C library. This one does neither,
# and so runs in an empty container and beside any C library.
static:
	$(GO) build -trimpath -tags static -o $(BIN)-static ./cmd/starling

demo: build
	$(BIN) demo

# Many tests wait rather than compute, so what is emulated runs beside them.
test: lint-go
	$(MAKE) --no-print-directory -j2 test-go test-arm64

# Vetted before, and in internal/lint. The package that takes longest begins first.
test-go: test-tools
	$(GO) test -vet=off -timeout 20m ./train ./...

# The programs that tests run against, as METIS and Open MPI, where they may be installed.
test-tools:
	scripts/test-tools

# The same tests on another architecture, emulated: the pure-Go twins of every kernel.
test-arm64: test-tools lint-arm64
	scripts/test-arm64

lint: lint-go lint-arm64

lint-go:
	$(GO) vet ./...
	$(GO) vet -tags static ./wire ./partition
	$(GO) vet -tags openblas ./tensor
	$(GO) test -vet=off ./internal/lint

lint-arm64:
	GOARCH=arm64 $(GO) vet ./...

# A minute for every reader of a file.
fuzz:
	scripts/fuzz 60s

bench: build
	scripts/bench
	scripts/bench-wire

bench-peers: build
	scripts/bench-peers
	scripts/bench-mini

# Rewrites the committed assembly from its generator.
generate:
	$(GO) generate ./tensor/simd

clean:
	rm -rf bin build
