#!/bin/bash
# Shows what Bole does: puts the sources of the Go distribution under version
# control, commits them, mounts the commit and compares it with the original.
#
#   scripts/demo.sh BOLE     BOLE is the program, e.g. bin/bole
#
# It works in a directory of its own and removes it at the end; with KEEP=1 the
# repository and the mount stay, and it says where.
set -euo pipefail

bole=$(realpath "$1")
work=$(mktemp -d -t bole-demo.XXXXXX)

cleanup() {
	if mountpoint -q "$work/view" && ! "$bole" umount "$work/view"; then
		echo "still mounted, and left as it is: $work/view" >&2
		return
	fi
	rm -rf "$work"
}
trap cleanup EXIT

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\033[1m' plain=$'\033[0m'
fi

step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }

# run shows a command as one would type it, and runs it.
run() {
	local word line='$'
	for word in "$@"; do
		word=${word/#"$bole"/bole}
		word=${word/#"$work"/'$work'}
		case $word in *' '*) word="\"$word\"" ;; esac
		line+=" $word"
	done
	printf '%s\n' "$line"
	"$@"
}

step "A working directory: a copy of the Go sources"
cp -R "$(go env GOROOT)/src" "$work/src"
chmod -R u+w "$work/src" # a toolchain that go downloaded is read-only
echo "$(find "$work/src" -type f | wc -l) files, $(du -sh --apparent-size "$work/src" | cut -f1); \$work is $work"

step "Put it under version control"
run "$bole" init "$work/src"
"$bole" -C "$work/src" config set user.name "Demo"
"$bole" -C "$work/src" config set user.email "demo@example.org"
run "$bole" -C "$work/src" add .
run "$bole" -C "$work/src" commit -m "the sources of Go"
run "$bole" -C "$work/src" log

step "Mount the commit and look at it"
mkdir "$work/view"
run "$bole" -C "$work/src" mount HEAD "$work/view"
run ls "$work/view/fmt"
run df -h "$work/view"

step "It is the same, byte for byte"
run diff -r --no-dereference --exclude=.bole "$work/src" "$work/view"
echo "no difference"

if [ "${KEEP:-0}" = 1 ]; then
	trap - EXIT
	step "Kept"
	echo "The commit is mounted at $work/view. When you are done:"
	echo "  $bole umount $work/view"
	echo "  rm -rf $work"
	exit
fi
step "Unmount and clean up"
run "$bole" umount "$work/view"
