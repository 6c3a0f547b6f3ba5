# make demo    the two-minute tour, on generated data
# make wheel   the Python package, with the program inside
# make release binaries, wheels and packages for every system, with sums, the same bytes from the same commit
# make test    everything a change must pass; also what CI runs
# make race    the packages with goroutines of their own, under the race detector
# make lint    vet, the rules of internal/lint, staticcheck and govulncheck
# make walk    every command that README and docs print, as printed, and every script on its smallest input
# make bench   our kernels beside what the machine can do, our wire beside iperf3 and Open MPI, as ratios
# make bench-peers   our epochs and mini-batches beside PyG's and DGL's, as ratios

GO ?= go
BIN := bin/starling
export CGO_ENABLED = 0
# What starling version and results show, wherever go itself does not look.
COMMIT := $(shell git describe --always --abbrev=12 --exclude '*' --dirty=+changes 2>/dev/null)
LDFLAGS := -X starling/internal/version.commit=$(COMMIT)
export STARLING_PYTHON ?= $(CURDIR)/build/python/bin/python

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := v1.8.0

# The race detector makes tests 2 to 20 times slower. RACE_QUICK stay quick; make test runs them under it only.
RACE_QUICK := ./coflow ./disk ./event
RACE := $(RACE_QUICK) ./cluster ./collective ./exchange ./innet/... ./internal/... ./netsim/... ./sample ./serve ./store ./train ./watch \
	./wire/...

.PHONY: build static wheel release demo test test-go test-race test-tools test-arm64 race lint lint-go vet lint-arm64 staticcheck \
	vulncheck fuzz walk bench bench-peers generate clean

build:
	$(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/starling

# Opening MPI's and METIS's libraries takes the system's loader and C library. This one does neither,
# and so runs in an empty container and beside any C library.
static:
	$(GO) build -trimpath -tags static -ldflags "$(LDFLAGS)" -o $(BIN)-static ./cmd/starling

# The Python package with the program inside, for this machine, or with GOARCH=arm64 for another. One wheel is left.
DIST ?= build/dist
wheel:
	@mkdir -p $(DIST) && rm -f $(DIST)/starling-*.whl
	$(GO) build -trimpath -ldflags "-s -w $(LDFLAGS)" -o $(DIST)/starling ./cmd/starling
	GOOS= GOARCH= $(GO) run ./internal/release wheel -binary $(DIST)/starling -version "$(COMMIT)" -out $(DIST)

# Binaries, archives, wheels, Debian packages, bills of materials and sums, for every system: VERSION=v1.2.3.
VERSION ?= $(COMMIT)
release:
	rm -rf build/release && mkdir -p build/release
	$(GO) run ./internal/release all -version "$(VERSION)" -commit "$(COMMIT)" -out build/release

demo: build
	$(BIN) demo

# Many tests wait rather than compute, so the emulated ones run beside them. At the end: which tests were
# skipped and why, which are unsteady (one may be), and which packages failed, of all.
test: vet
	@mkdir -p build && rm -f build/test-*.txt
	@status=0; $(MAKE) --no-print-directory -j2 test-go test-arm64 test-race || status=$$?; cat build/test-*.txt; \
		unsteady=$$(cat build/test-*.txt | grep -c 'UNSTEADY, '); \
		[ $$unsteady -le 1 ] || { echo "FAILED: $$unsteady unsteady tests, of which there may be 1"; status=1; }; \
		exit $$status

# Vetted before. The packages that take longest begin first.
test-go: test-tools
	@mkdir -p build
	$(GO) run ./internal/testsummary -summary build/test-go.txt -again 3 \
		$(GO) test -json -vet=off -timeout 20m ./cmd/starling ./train \
		$(filter-out $(RACE_QUICK),$(shell $(GO) list ./... | sed 's|^starling|.|'))

test-race: test-tools
	scripts/test-race $(RACE_QUICK)

race:
	scripts/test-race $(RACE)
	@cat build/test-race.txt

# The programs that tests run against, as METIS and Open MPI, where they may be installed.
test-tools:
	scripts/test-tools

# The same tests on another architecture, emulated: the pure-Go twins of every kernel.
test-arm64: test-tools
	scripts/test-arm64

lint: lint-go lint-arm64 staticcheck vulncheck

lint-go: vet
	$(GO) test -vet=off ./internal/lint

vet:
	$(GO) vet ./...
	$(GO) vet -tags static ./wire/... ./partition
	$(GO) vet -tags openblas ./tensor

lint-arm64:
	GOARCH=arm64 $(GO) vet ./...

# Takes minutes the first time, so that it is no part of make test.
staticcheck:
	$(GO) run $(STATICCHECK) ./...

vulncheck:
	scripts/vulncheck $(GOVULNCHECK)

# A minute for every reader of a file.
fuzz:
	scripts/fuzz 60s

# Minutes, so that it is no part of make test, which runs the shorter half.
walk:
	scripts/walk

bench: build
	scripts/bench
	scripts/bench-wire

bench-peers: build
	scripts/bench-peers
	scripts/bench-mini

# Rewrites the committed assembly from its generator, the object of the XDP switch from its source
# (clang and llvm-strip), and the code of CUDA kernels from theirs.
generate:
	$(GO) generate ./tensor/cpu/simd ./innet/xdp ./python
	scripts/nvrtc
	$(GO) run ./tensor/cuda/generate

clean:
	rm -rf bin build
