package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/fatih/color"

	"bole/merkle"
)

// Colours; fatih/color leaves them out when standard output is no terminal or NO_COLOR is set.
var (
	colorID      = color.New(color.FgYellow).SprintFunc()
	colorAdded   = color.New(color.FgGreen).SprintFunc()
	colorChanged = color.New(color.FgRed).SprintFunc()
	colorDir     = color.New(color.FgBlue, color.Bold).SprintFunc()
	colorLink    = color.New(color.FgCyan).SprintFunc()
	colorExec    = color.New(color.FgGreen, color.Bold).SprintFunc()
)

// shortDigits is how much of an id people are shown.
const shortDigits = 12

func shortID(h merkle.Hash) string { return h.String()[:shortDigits] }

// escapes are the letters of C for control characters, in the order 7 to 13.
const escapes = "abtnvfr"

// quote returns a name as it is printed: unchanged when it is plain, else in
// double quotes with the escapes of C, as git's core.quotePath does, so that one
// entry is one line. Printable UTF-8 stays; other bytes become octal.
func quote[T string | []byte](name T) string {
	s := string(name)
	var b strings.Builder
	appendEscaped(&b, s, true)
	if b.Len() == len(s) {
		return s
	}
	return `"` + b.String() + `"`
}

// escapeLine keeps a message on one line; quotes and backslashes stay.
func escapeLine(s string) string {
	var b strings.Builder
	appendEscaped(&b, s, false)
	return b.String()
}

func appendEscaped(b *strings.Builder, s string, quotes bool) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		c := s[i]
		switch {
		case quotes && (c == '"' || c == '\\'):
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= 7 && c <= 13:
			b.WriteByte('\\')
			b.WriteByte(escapes[c-7])
		case r == utf8.RuneError && n == 1, !unicode.IsPrint(r):
			for j := range n {
				fmt.Fprintf(b, `\%03o`, s[i+j])
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
}

// text makes a stored message safe to print: line breaks and tabs stay, other
// control characters are escaped.
func text(s string) []string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		parts := strings.Split(l, "\t")
		for j := range parts {
			parts[j] = escapeLine(parts[j])
		}
		lines[i] = strings.Join(parts, "\t")
	}
	return lines
}

// subject is the first line of a message.
func subject(message string) string {
	s, _, _ := strings.Cut(message, "\n")
	return escapeLine(s)
}

// modeText is an entry's mode as ls -l shows it.
func modeText(e *merkle.Entry) string {
	b := []byte("-rwxrwxrwx")
	switch e.Kind {
	case merkle.KindDir:
		b[0] = 'd'
	case merkle.KindSymlink:
		b[0] = 'l'
	}
	for i := range 9 {
		if e.Perm&(1<<(8-i)) == 0 {
			b[1+i] = '-'
		}
	}
	return string(b)
}

// paint colours an entry's name by its kind.
func paint(e *merkle.Entry, name string) string {
	switch {
	case color.NoColor:
		return name
	case e.Kind == merkle.KindDir:
		return colorDir(name)
	case e.Kind == merkle.KindSymlink:
		return colorLink(name)
	case e.Perm&0o111 != 0:
		return colorExec(name)
	}
	return name
}

// size is a number of bytes for people.
func size(n uint64) string { return humanize.IBytes(n) }

// count is "1 file", "2,000 files".
func count[N int | uint64](n N, noun string) string {
	s := humanize.Comma(int64(n)) + " " + noun
	if n == 1 {
		return s
	}
	if stem, ok := strings.CutSuffix(s, "y"); ok {
		return stem + "ies"
	}
	return s + "s"
}

// signatureTime is the moment of a signature in its own zone.
func signatureTime(s merkle.Signature) time.Time {
	return time.Unix(0, s.When).In(time.FixedZone("", int(s.Zone)*60))
}

func signatureName(s merkle.Signature) string {
	return escapeLine(s.Name + " <" + s.Email + ">")
}
