# phonerack: every target that people run. `make help` lists them.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# PHONERACK_CACHE may name another folder for what setup downloads.
ifeq ($(PHONERACK_CACHE),)
CACHE    := $(CURDIR)/.cache
else ifeq ($(filter /%,$(firstword $(PHONERACK_CACHE))),)
CACHE    := $(CURDIR)/$(PHONERACK_CACHE)
else
CACHE    := $(PHONERACK_CACHE)
endif
BIN      := bin
FUZZTIME ?= 30s
# Set to an empty word to leave the race detector out, as on a machine that lacks it.
RACE     ?= -race

# What computes much, and shares nothing that it computes on, is not watched by the race detector: there it takes five to
# ten times as long. Packages with a generic type that synchronizes, such as sync.Map, are no candidates: theirs may become
# everybody's, which makes races where there are none.
UNWATCHED := $(foreach p,regexp image/draw compress/flate hash/adler32 golang.org/x/image/vector modernc.org/sqlite/lib,-gcflags=$p=-race=false)

# Pinned tools: fetched by the Go tool itself, nothing is installed. They are built by the Go of go.mod: an older go
# command would fetch the newest one for them, a second toolchain.
TOOL        := GOTOOLCHAIN=$$(go env GOVERSION | grep -oE '^go1\.[0-9.]+' || echo local) go run
export STATICCHECK_CACHE := $(CACHE)/staticcheck
GOFUMPT     := $(TOOL) mvdan.cc/gofumpt@v0.12.0
STATICCHECK := $(TOOL) honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The adb client of Debian's backports, unpacked by setup: a judge in tests.
PHONERACK_ADB ?= $(CACHE)/rig/bin/adb
export PHONERACK_ADB
export PHONERACK_CACHE := $(CACHE)

# Else the Go tool asks git, which refuses in a clone that belongs to somebody else, as root's often does.
export GOFLAGS := -buildvcs=false $(GOFLAGS)

# The Go tool keeps its caches at home, and some runners of jobs forget where that is.
ifeq ($(HOME),)
export HOME := $(shell getent passwd "$$(id -u)" | cut -d: -f6)
endif

# Targets build and boot on all processors; `make -j` would run them into each other.
.NOTPARALLEL:

ARM64 := CGO_ENABLED=1 GOOS=linux GOARCH=arm64 CC=aarch64-linux-gnu-gcc \
	PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what the other targets need; quick when nothing is missing
	@firmware/rig/setup.sh

.PHONY: helpers
helpers: setup ## fetch the opt-in helper apps for phones (20 MB, see docs/helpers.md) into the cache
	@go run ./agent/phone/appium/fetch "$(CACHE)/helpers"

.PHONY: build
build: setup ## build the programs for this machine and rackd for the board into bin/
	@mkdir -p $(BIN)
	go build -o $(BIN)/ ./cmd/...
	$(ARM64) go build -o $(BIN)/arm64/ ./cmd/rackd
	CGO_ENABLED=0 GOOS=linux GOARCH=arm64 go build -o $(BIN)/arm64/ ./cmd/rackctl

.PHONY: demo
demo: setup ## the main job: four phones on the emulated board, two tasks at once
	go run ./cmd/demo

.PHONY: demo-native
demo-native: setup ## the same without the emulated board, over byte streams
	go run ./cmd/demo --native

.PHONY: test
test: as-root setup lint build-portable test-unit test-board ## all tests, the emulated board's too

.PHONY: test-unit
test-unit: setup ## the tests that need no emulated board
	go test -vet=off $(RACE) $(if $(RACE),$(UNWATCHED)) -timeout 20m $$(go list ./... | grep -v /firmware/rig/cloudrig)
	go test -vet=off -p 1 -tags browser -run InABrowser ./firmware/status ./firmware # in Chromium, which is not watched either
	go test -vet=off -run FitInTheirMemory ./agent/runner # of which the race detector would take the most
	go test -vet=off -p 2 -timeout 20m ./firmware/rig/cloudrig/... # whole programs, killed again and again: two sites of them leave some of two processors

.PHONY: as-root
as-root:
	@((EUID == 0)) || { echo "the emulated board's tests need root, for a real adbd in namespaces of its own; make test-unit and make demo do not" >&2; exit 1; }

# Built on all processors first; then one board boots after the other. Tests that need no board have run in test-unit.
BOARD_TESTS = ^($(shell grep -rlx '//go:build rig' --include='*_test.go' firmware/rig | xargs grep -hoE '^func Test[A-Za-z0-9_]+' | sed 's/func //' | paste -sd'|'))$$
.PHONY: test-board
test-board: as-root setup ## the emulated board's tests alone
	@go test -vet=off -tags rig -run '^$$' ./firmware/rig/... >/dev/null || true
	go test -vet=off -tags rig -p 1 -count=1 -timeout 15m -run '$(BOARD_TESTS)' $$(go list -tags rig ./firmware/rig/... | grep -v /cloudrig)

.PHONY: build-portable
build-portable: ## prove that the programs without C build for each system
	@for program in rackctl phonesim rackcloud; do \
		[ -d cmd/$$program ] || continue; \
		for target in linux/amd64 linux/arm64 darwin/arm64 windows/amd64; do \
			echo "build $$program for $$target without C"; \
			CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} go build -o /dev/null ./cmd/$$program; \
		done; \
	done

.PHONY: lint
lint: setup ## gofumpt, vet, staticcheck and the import rules
	@unformatted=$$($(GOFUMPT) -l .); [ -z "$$unformatted" ] || { echo "not formatted (run make fmt):"; echo "$$unformatted"; exit 1; }
	go vet -tags rig,board,browser,soak ./...
	$(STATICCHECK) -tags rig,board,browser,soak ./...
	go test -count=1 ./firmware/archtest

.PHONY: fmt
fmt: ## format the code
	$(GOFUMPT) -l -w .

.PHONY: bench
bench: setup ## benchmarks, one `bench <name> <value> <unit>` a line
	@go test -run '^$$' -bench . -benchtime 1s ./... | awk ' \
		/^bench /{print} \
		/^pkg: /{pkg = $$2; sub(/^phonerack\//, "", pkg)} \
		/^Benchmark/{name = $$1; sub(/^Benchmark/, "", name); sub(/-[0-9]+$$/, "", name); \
			for (i = 3; i < NF; i += 2) printf "bench %s/%s %s %s\n", pkg, name, $$i, $$(i+1)} \
		/^(FAIL|---|panic)/{print > "/dev/stderr"; bad = 1} \
		END{exit bad}'

.PHONY: fuzz
fuzz: setup ## run each fuzz target for FUZZTIME (30s)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go | sed 's/^func //'); do \
			echo "fuzz $$dir $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir; \
		done; \
	done

.PHONY: soak
soak: setup ## long counts of the loops that make test runs short; results to docs/soak.md
	PHONERACK_SOAK=$${PHONERACK_SOAK:-1} go test -tags rig,soak -p 1 -count=1 -timeout 8h -run Soak -v ./usb/... ./agent/mcp ./firmware/... | tee "$(CACHE)/soak.log"
	@{ echo "# Soak"; echo; echo "Made by \`make soak\` on $$(date -u +%F), commit $$(git rev-parse --short HEAD)."; echo; echo '```'; \
		grep -E '^ *(soak |--- )' "$(CACHE)/soak.log"; echo '```'; } > docs/soak.md

.PHONY: clean
clean: ## remove what was built; the cache of downloads stays
	rm -rf $(BIN) demo-out
