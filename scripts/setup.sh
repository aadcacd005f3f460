#!/bin/bash
# Installs what Bole needs on a Debian or Ubuntu machine, builds it, and runs
# the demo: a repository made from the sources of the Go distribution,
# committed, mounted and listed. It may be run again at any time; what is
# there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/.."

# One line each: the program that tells whether a package is there, the
# package, what it is for.
packages() {
	cat <<-'LIST'
		gcc          gcc          builds the database library
		make         make         runs the build
		git          git          names the version; judges ignore files in the tests
		fusermount3  fuse3        mounts without being root
		mkfs.ext4    e2fsprogs    tests: what ext4 takes for the same work
		losetup      mount        tests: a file system in a file
		unshare      util-linux   tests: other users and mounts of their own
		getfattr     attr         tests: extended attributes
		rsync        rsync        tests: compares trees
		vmtouch      vmtouch      tests: what is in the page cache
		strace       strace       tests: counts system calls
		python3      python3      tests: a program that reads through a mount
		perl         perl         tests: another one
	LIST
}

missing() {
	local program package rest
	PATH=$PATH:/usr/sbin:/sbin
	packages | while read -r program package rest; do
		command -v "$program" >/dev/null || echo "$package"
	done
	# The C library's headers and the certificates for downloads are no programs.
	echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1 || echo libc6-dev
	[ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
}

fail() {
	echo "setup: $*" >&2
	exit 1
}

install_packages() {
	local list
	list=$(missing | sort -u | tr '\n' ' ')
	[ -n "$list" ] || return 0
	command -v apt-get >/dev/null || fail "please install: $list(this is no Debian or Ubuntu)"
	local root=()
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || fail "please install as root: apt-get install $list"
		root=(sudo)
	fi
	echo "Installing: $list"
	"${root[@]}" apt-get update -q
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $list
}

check_go() {
	local want version
	want=$(sed -n 's/^go //p' go.mod)
	command -v go >/dev/null || fail "Go $want or newer is not on PATH; see https://go.dev/doc/install"
	version=$(go env GOVERSION)
	version=${version#go}
	version=${version%% *}
	[ "$(printf '%s\n' "$want" "$version" | sort -V | head -n 1)" = "$want" ] ||
		fail "Go $want or newer is needed, this is $version; see https://go.dev/doc/install"
}

check_fuse() {
	[ -e /dev/fuse ] && return
	[ "$(id -u)" = 0 ] && modprobe fuse 2>/dev/null && [ -e /dev/fuse ] && return
	fail "there is no /dev/fuse; in a container, start it with --device /dev/fuse --cap-add SYS_ADMIN"
}

install_packages
check_go
check_fuse
make demo
