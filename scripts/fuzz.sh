#!/bin/bash
# Runs every fuzz target of the module, one after the other, for FUZZTIME each
# (60s). What makes one fail is kept by go under the package's testdata/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."

count=0
for package in $(go list ./...); do
	listed=$(go test "$package" -list '^Fuzz') # a package that does not compile ends the script
	for target in $(grep '^Fuzz' <<<"$listed" || true); do
		echo "== $package $target"
		go test "$package" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-60s}"
		count=$((count + 1))
	done
done
echo "$count fuzz targets ran for ${FUZZTIME:-60s} each"
[ "$count" -gt 0 ]
