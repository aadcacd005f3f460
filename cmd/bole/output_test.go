package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"bole/merkle"
)

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{
		"":               "",
		"plain.txt":      "plain.txt",
		"with blank":     "with blank",
		"grün/日本":        "grün/日本",
		"a\nb":           `"a\nb"`,
		"\a\b\t\v\f\r":   `"\a\b\t\v\f\r"`,
		"\x01\x1b\x7f":   `"\001\033\177"`,
		`say "hi"`:       `"say \"hi\""`,
		`back\slash`:     `"back\\slash"`,
		"raw\xffbyte":    `"raw\377byte"`,
		"half\xc3":       `"half\303"`,
		"\u202egnp.exe":  `"\342\200\256gnp.exe"`,
		"no\u00a0break":  `"no\302\240break"`,
		"\ufffd is real": "\ufffd is real",
	} {
		if got := quote(name); got != want {
			t.Errorf("quote(%q) is %s, want %s", name, got, want)
		}
		if got := quote([]byte(name)); got != want {
			t.Errorf("quote of bytes %q is %s, want %s", name, got, want)
		}
	}
}

// unquote undoes quote by the rules of C.
func unquote(s string) (string, error) {
	inner, ok := strings.CutPrefix(s, `"`)
	if !ok {
		return s, nil
	}
	if inner, ok = strings.CutSuffix(inner, `"`); !ok {
		return "", errors.New("no closing quote")
	}
	var b strings.Builder
	for i := 0; i < len(inner); i++ {
		if inner[i] != '\\' {
			b.WriteByte(inner[i])
			continue
		}
		i++
		if j := strings.IndexByte("abtnvfr", inner[i]); j >= 0 {
			b.WriteByte(byte(7 + j))
			continue
		}
		if inner[i] == '"' || inner[i] == '\\' {
			b.WriteByte(inner[i])
			continue
		}
		n, err := strconv.ParseUint(inner[i:i+3], 8, 8)
		if err != nil {
			return "", err
		}
		b.WriteByte(byte(n))
		i += 2
	}
	return b.String(), nil
}

func checkQuoted(t interface{ Fatalf(string, ...any) }, name string) {
	q := quote(name)
	back, err := unquote(q)
	if err != nil || back != name {
		t.Fatalf("%q is quoted as %s, which reads as %q (%v)", name, q, back, err)
	}
	if !utf8.ValidString(q) {
		t.Fatalf("%q is quoted as bytes that are not UTF-8: %q", name, q)
	}
	for _, r := range q + escapeLine(name) {
		if !unicode.IsPrint(r) {
			t.Fatalf("%q: %q is printed as it is", name, r)
		}
	}
}

func TestQuotedNamesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkQuoted(t, string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
		checkQuoted(t, rapid.String().Draw(t, "text"))
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("plain")
	f.Add("a\nb\"\\\xff\x1b\u202e")
	f.Fuzz(func(t *testing.T, name string) { checkQuoted(t, name) })
}

func TestEscapeLineKeepsQuotes(t *testing.T) {
	if got := escapeLine("say \"hi\" \\ \n\x1b"); got != `say "hi" \ \n\033` {
		t.Errorf("%s", got)
	}
}

func TestText(t *testing.T) {
	got := text("subject\n\n\ta\x1b[31m\rb\n\n")
	want := []string{"subject", "", "\ta\\033[31m\\rb"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := subject("one\x07\ntwo"); got != `one\a` {
		t.Errorf("subject %q", got)
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 files":           count(0, "file"),
		"1 file":            count(1, "file"),
		"2,000 directories": count(2000, "directory"),
		"1 directory":       count(uint64(1), "directory"),
		"7 whole files":     count(uint64(7), "whole file"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestModeText(t *testing.T) {
	for _, c := range []struct {
		kind merkle.Kind
		perm uint16
		want string
	}{
		{merkle.KindFile, 0o644, "-rw-r--r--"}, {merkle.KindFile, 0, "----------"}, {merkle.KindFile, 0o777, "-rwxrwxrwx"},
		{merkle.KindDir, 0o751, "drwxr-x--x"}, {merkle.KindSymlink, 0o777, "lrwxrwxrwx"},
	} {
		if got := modeText(&merkle.Entry{Kind: c.kind, Perm: c.perm}); got != c.want {
			t.Errorf("%o: %s, want %s", c.perm, got, c.want)
		}
	}
}

func TestSignatureTime(t *testing.T) {
	s := merkle.Signature{Name: "A\nB", Email: "m", When: -1, Zone: -90}
	if got := newSignatureJSON(s).Time; got != "1969-12-31T22:29:59.999999999-01:30" {
		t.Errorf("time %s", got)
	}
	if got := signatureName(s); got != `A\nB <m>` {
		t.Errorf("name %s", got)
	}
}
