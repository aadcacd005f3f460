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

// FuzzLeaseInfo reads hostile lease files; what is accepted is written and read back the same.
func FuzzLeaseInfo(f *testing.F) {
	f.Add([]byte(`{"id":"1","kind":"mount","pid":7,"mountpoint":"/m","commits":["ab"]}`))
	f.Add([]byte(`{"raw":{"mountpoint":"L/8K","nobody":"AA=="},"mountpoint":"x"}`))
	f.Add([]byte(`{"raw":{"path":7}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, out LeaseInfo
		if in.UnmarshalJSON(b) != nil {
			return
		}
		text, err := in.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if err := out.UnmarshalJSON(text); err != nil || !reflect.DeepEqual(in, out) {
			t.Fatalf("%q is read as %+v, written as %q and read again as %+v: %v", b, in, text, out, err)
		}
	})
}
