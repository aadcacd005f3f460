# make demo     build, put the Go sources under version control, mount them, look at them
# make test     all tests that need no patience: counts and bytes, never times
# make race     all tests under the race detector, the program too; make test
#               has the short half of it
# make single   the libraries' tests with one processor
# make check    formatting, vet, staticcheck, import arrows and the other house rules
# make fuzz     every fuzz target for FUZZTIME
# make crash    the long kill and full-disk loops
# make scale    large trees and large files, each figure beside its limit
# make bench    times and ratios, each beside its limit
# make install  the binary into PREFIX/bin

PREFIX   ?= /usr/local
FUZZTIME ?= 60s
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)

# Packages that compile without cgo, and so can be vetted for another system.
PURE     := ./merkle ./blobstore ./internal/ignore ./internal/lint
# Everything but the black box, whose tests run the program from outside.
LIBS     := ./merkle ./lmdbstore ./blobstore ./snapshot ./fs ./cmd/... ./internal/...
TAGS     := crash,scale,bench

# gcc warns about deliberate fall-through in LMDB's C code on every build.
export CGO_CFLAGS := -O2 -g -Wno-implicit-fallthrough

.PHONY: all build demo test race single check fuzz crash scale bench install clean

all: build

build:
	go build -ldflags "-X main.version=$(VERSION)" -o bin/bole ./cmd/bole

demo: build
	scripts/demo.sh bin/bole

test:
	go test -race -short -timeout 10m $(LIBS)
	go test -timeout 10m ./...

race:
	go test -count=1 -race -timeout 40m $(LIBS)
	BOLE_RACE=1 go test -count=1 -timeout 40m ./integration

single:
	GOMAXPROCS=1 go test -count=1 -timeout 40m $(LIBS)

check:
	@files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	  if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi
	go vet ./...
	go vet -tags invariants,$(TAGS) ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go vet $(PURE)
	go tool -modfile=tools/go.mod staticcheck -tags invariants,$(TAGS) ./...
	go test -count=1 ./internal/lint

fuzz:
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

crash: build
	BOLE_BIN=$(CURDIR)/bin/bole go test -count=1 -v -tags crash -timeout 2h -run 'Killed|FullDisk|Crash' ./integration

scale: build
	BOLE_BIN=$(CURDIR)/bin/bole go test -count=1 -v -tags scale -timeout 4h -run '^TestScale' ./integration

bench: build
	BOLE_BIN=$(CURDIR)/bin/bole go test -count=1 -v -tags bench -timeout 2h -run '^TestBench' ./integration

# Not built here: a root without Go on its PATH installs what make has built.
install:
	@[ -x bin/bole ] || { echo "bin/bole is not there: run make first"; exit 1; }
	install -D -m 0755 bin/bole $(DESTDIR)$(PREFIX)/bin/bole

clean:
	rm -rf bin
