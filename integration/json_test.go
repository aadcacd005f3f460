package integration

import (
	"encoding/base64"
	"encoding/json"
	"testing"
)

// jsonPath returns the path of a JSON object as bytes: field path, or path_b64
// for a name that is not UTF-8.
func jsonPath(t testing.TB, e map[string]any) string {
	t.Helper()
	if b64, isText := e["path_b64"].(string); isText {
		b, err := base64.StdEncoding.DecodeString(b64)
		if err != nil {
			t.Fatalf("path_b64 %q: %v", b64, err)
		}
		return string(b)
	}
	path, isText := e["path"].(string)
	if !isText {
		t.Fatalf("a JSON entry without path: %v", e)
	}
	return path
}

// parseJSON reads one JSON value.
func parseJSON[T any](t testing.TB, out string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("not JSON: %v in %s", err, clip(out))
	}
	return v
}

// numberAt walks nested JSON objects and returns the number at the end.
func numberAt(t testing.TB, v any, keys ...string) uint64 {
	t.Helper()
	at := v
	for _, k := range keys {
		obj, isObj := at.(map[string]any)
		if !isObj || obj[k] == nil {
			t.Fatalf("no %q of %v in %v", k, keys, v)
		}
		at = obj[k]
	}
	n, isNum := at.(float64)
	if !isNum {
		t.Fatalf("%v is no number in %v", keys, v)
	}
	return uint64(n)
}
