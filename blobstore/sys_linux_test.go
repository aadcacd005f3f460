package blobstore

import "testing"

func TestVersionAtLeast(t *testing.T) {
	for release, want := range map[string]bool{
		"5.8.0": true, "5.8": true, "5.10.0-1-amd64": true, "6.1.0-13-amd64": true, "10.0": true,
		"5.7.19": false, "4.19.0": false, "": false, "5": false, "x.y": false, "5.": false, "5.x": false,
	} {
		if got := versionAtLeast(release, 5, 8); got != want {
			t.Errorf("%q at least 5.8: %v", release, got)
		}
	}
}
