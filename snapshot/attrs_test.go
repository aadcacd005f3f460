package snapshot

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// TestKeptAttributes: all of user.* but what describes a disk, a download or ourselves.
func TestKeptAttributes(t *testing.T) {
	for name, want := range map[string]bool{
		"user.x": true, "user.com.apple.metadata:_kMDItemUserTags": true, "user.com.apple.ResourceFork": true, "user.DosStream.x:$DATA": true,
		"user.com.apple.FinderInfo": true, "user.boleX": true, "user.bole": true,
		"user.": false, "user": false, "security.selinux": false, "trusted.x": false, "system.posix_acl_access": false,
		"user.bole.hash": false, "user.bole.": false, "user.DOSATTRIB": false, "user.com.apple.quarantine": false,
		"user.com.apple.provenance": false, "user.com.apple.lastuseddate#PS": false, "user.com.apple.macl": false,
	} {
		if got := keptAttr(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAttributesRoundTrip takes attributes of files and folders there and back.
func TestAttributesRoundTrip(t *testing.T) {
	w := newWork(t)
	w.write("d/f", "x")
	w.write("plain", "x")
	big := strings.Repeat("v", 60_000)
	for _, p := range []string{".", "d", "d/f"} {
		for name, v := range map[string]string{"user.empty": "", "user.bin": "\x00\xff", "user.big": big, "user.bole.hash": "not ours to keep", "user.DOSATTRIB": "x"} {
			if err := unix.Setxattr(w.at(p), name, []byte(v), 0); err != nil {
				t.Skip("this file system does not hold the attributes: ", err)
			}
		}
	}
	id := w.save("first")
	w.wantClean()
	got := readCommitTree(t, w.Repo, id)
	for _, p := range []string{"", "d", "d/f"} {
		want := showAttrs([]merkle.Attr{{Name: "user.big", Value: []byte(big)}, {Name: "user.bin", Value: []byte("\x00\xff")}, {Name: "user.empty"}})
		if got[p].Attrs != want {
			t.Errorf("%q has %s, want %s", p, got[p].Attrs, want)
		}
	}
	if got["plain"].Attrs != "" {
		t.Errorf("plain has %s", got["plain"].Attrs)
	}
	w.remove("d")
	ok(t, unix.Setxattr(w.at("."), "user.empty", []byte("changed"), 0))
	ok(t, unix.Removexattr(w.at("."), "user.big"))
	ok(t, unix.Setxattr(w.at("."), "user.more", []byte("more"), 0))
	ok(t, unix.Setxattr(w.at("plain"), "user.more", []byte("more"), 0))
	w.wantUnstaged("D d", "M .", "M plain")
	w.mustCheckout(id.String(), true)
	w.wantClean()
	wantTree(t, "the commit", readCommitTree(t, w.Repo, id), got)
	disk := readDisk(t, w.root)
	for p, n := range got {
		if disk[p].Attrs != strings.ReplaceAll(n.Attrs, "user.DOSATTRIB=x;", "") && !strings.Contains(disk[p].Attrs, "DOSATTRIB") {
			t.Errorf("%q has %s on disk", p, disk[p].Attrs)
		}
	}
	if _, err := unix.Getxattr(w.at("."), "user.DOSATTRIB", nil); err != nil {
		t.Errorf("an attribute that is not versioned went: %v", err)
	}
}
