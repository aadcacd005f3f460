package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bole/merkle"
)

func TestConfigRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	if c, err := ReadConfig(path); err != nil || c != (Config{}) {
		t.Fatalf("a missing file is %+v, %v", c, err)
	}
	want := Config{Core: CoreConfig{Bare: true, Shared: true, Contents: "/some where/\"odd\"", NodeStore: "lmdb"},
		User: UserConfig{Name: "Ada Ünïcode \\ \"quoted\"", Email: "ada@example.org"}}
	ok(t, WriteConfig(path, want))
	got, err := ReadConfig(path)
	if err != nil || got != want {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, text := range []string{"[core]\nbrae = true\n", "[other]\nx = 1\n", "not toml", "[core]\nbare = \"yes\"\n", "[core\n", "\x00"} {
		path := filepath.Join(t.TempDir(), "config.toml")
		ok(t, os.WriteFile(path, []byte(text), 0o644))
		if c, err := ReadConfig(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q is %+v, %v", text, c, err)
		}
	}
}

func TestConfigKeys(t *testing.T) {
	c := Config{Core: CoreConfig{NodeStore: "lmdb", Contents: "/c"}}
	for _, key := range ConfigKeys() {
		if _, err := c.Get(key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		err := c.Set(key, "value")
		if isUser := strings.HasPrefix(key, "user."); isUser != (err == nil) {
			t.Errorf("set %s: %v", key, err)
		} else if v, _ := c.Get(key); isUser && v != "value" {
			t.Errorf("%s is %q", key, v)
		}
	}
	for key, want := range map[string]string{"core.node_store": "lmdb", "core.contents": "/c", "core.bare": "false", "core.shared": "false"} {
		if v, err := c.Get(key); v != want || err != nil {
			t.Errorf("%s is %q, %v", key, v, err)
		}
	}
	_, err := c.Get("user.nmae")
	wantErr(t, err, ErrUnknownKey, "user.name")
	wantErr(t, c.Set("x", "y"), ErrUnknownKey)
	for _, bad := range []string{"a\nb", "a\x00", "a<b", "a>b"} {
		if c.Set("user.name", bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestSaveConfig(t *testing.T) {
	w := newWork(t)
	c := w.Config()
	ok(t, c.Set("user.name", "Ada"))
	ok(t, w.SaveConfig(c))
	again, err := ReadConfig(w.file("config.toml"))
	if err != nil || again.User.Name != "Ada" || again.Core.NodeStore != "lmdb" {
		t.Fatalf("%+v, %v", again, err)
	}
	if w.Identity().Name != "Ada" {
		t.Fatal("the identity is another")
	}
}

func TestIdentity(t *testing.T) {
	w := newWork(t)
	t.Setenv("BOLE_USER_NAME", "Env <Name>\n")
	t.Setenv("BOLE_USER_EMAIL", "env@example.org")
	before := time.Now()
	s := w.Identity()
	if s.Name != "Env Name" || s.Email != "env@example.org" || s.When < before.UnixNano() || s.When > time.Now().UnixNano() {
		t.Errorf("from the environment: %+v", s)
	}
	if _, offset := before.Zone(); int(s.Zone) != offset/60 {
		t.Errorf("zone %d", s.Zone)
	}
	path, err := UserConfigPath()
	ok(t, err)
	ok(t, os.MkdirAll(filepath.Dir(path), 0o755))
	ok(t, WriteConfig(path, Config{User: UserConfig{Name: "User", Email: "user@example.org"}}))
	defer os.Remove(path)
	if s := w.Identity(); s.Name != "User" || s.Email != "user@example.org" {
		t.Errorf("from the user's file: %+v", s)
	}
	c := w.Config()
	c.User.Name = "Repo"
	ok(t, w.SaveConfig(c))
	if s := w.Identity(); s.Name != "Repo" || s.Email != "user@example.org" {
		t.Errorf("from both files: %+v", s)
	}
	ok(t, os.WriteFile(path, []byte("broken"), 0o644))
	t.Setenv("BOLE_USER_NAME", "")
	t.Setenv("BOLE_USER_EMAIL", "")
	if s := w.Identity(); s.Name != "Repo" || !strings.Contains(s.Email, "@") {
		t.Errorf("without any: %+v", s)
	}
	w.write("f", "x")
	if c, err := w.ReadCommit(w.save("x")); err != nil || c.Author.Name != "Repo" {
		t.Errorf("author %+v, %v", c.Author, err)
	}
}

func TestParseIdentity(t *testing.T) {
	for text, want := range map[string][2]string{
		"Ada Lovelace <ada@example.org>": {"Ada Lovelace", "ada@example.org"},
		" Ada  <ada@example.org> ":       {"Ada", "ada@example.org"},
		"Doe, John J. <j@d>":             {"Doe, John J.", "j@d"},
		"Ünï \"x\" (y) <root>":           {"Ünï \"x\" (y)", "root"},
	} {
		s, err := ParseIdentity(text)
		if err != nil || [2]string{s.Name, s.Email} != want || s.When == 0 {
			t.Errorf("%q is %+v, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "Ada", "ada@example.org", "<ada@example.org>", "Ada <>", "Ada <a", "Ada a>", "A <b> c", "A <b> <c>", "A <<b>", "A\nB <b>", "A <b\x00>"} {
		if s, err := ParseIdentity(text); !errors.Is(err, ErrIdentity) {
			t.Errorf("%q is %+v, %v", text, s, err)
		}
	}
	if _, err := (&merkle.Commit{Tree: merkle.Hash{1}, RootPerm: 0o755, Author: mustIdentity(t, "A B <c@d>")}).Encode(); err != nil {
		t.Error(err)
	}
}

func mustIdentity(t tb, s string) merkle.Signature {
	t.Helper()
	id, err := ParseIdentity(s)
	ok(t, err)
	return id
}
