package snapshot

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A lease comes back as it was written, whatever bytes its paths hold.
func TestLeaseFileKeepsAnyBytes(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
	rapid.Check(t, func(t *rapid.T) {
		in := LeaseInfo{ID: "id", Kind: "mount", PID: 7, Started: -1, Repository: text.Draw(t, "repository"),
			Mountpoint: text.Draw(t, "mountpoint"), Revision: text.Draw(t, "revision"), Path: text.Draw(t, "path"),
			Socket: text.Draw(t, "socket"), Log: text.Draw(t, "log"), Commits: []string{"c"}}
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out LeaseInfo
		if err := json.Unmarshal(b, &out); err != nil || !reflect.DeepEqual(in, out) {
			t.Fatalf("%+v comes back as %+v (%v) by way of %s", in, out, err, b)
		}
	})
}

func TestLeaseFileIsPlainForPeople(t *testing.T) {
	b, err := json.Marshal(LeaseInfo{Kind: "mount", Mountpoint: "/mnt/grün", Repository: "/r\xff"})
	if err != nil {
		t.Fatal(err)
	}
	if s := string(b); !strings.Contains(s, `"mountpoint":"/mnt/grün"`) || !strings.Contains(s, `"raw":{"repository":"L3L/"}`) {
		t.Errorf("%s", s)
	}
	if err := json.Unmarshal([]byte(`{"pid":"seven"}`), new(LeaseInfo)); err == nil {
		t.Error("a lease with a wrong type is read")
	}
}
