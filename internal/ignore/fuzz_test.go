package ignore

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// plainMatch says the same as matchTokens by trying everything, so it is short
// enough to be seen to be right and only fit for short texts.
func plainMatch(tokens []token, text string) bool {
	if len(tokens) == 0 {
		return text == ""
	}
	rest := tokens[1:]
	switch t := tokens[0]; t.kind {
	case literal:
		return strings.HasPrefix(text, t.text) && plainMatch(rest, text[len(t.text):])
	case oneOf:
		return text != "" && t.set.has(text[0]) && plainMatch(rest, text[1:])
	case star:
		return plainMatch(rest, text) || text != "" && text[0] != '/' && plainMatch(tokens, text[1:])
	case deepStar:
		return plainMatch(rest, text) || text != "" && plainMatch(tokens, text[1:])
	default:
		if plainMatch(rest, text) {
			return true
		}
		for i := range len(text) {
			if text[i] == '/' && plainMatch(rest, text[i+1:]) {
				return true
			}
		}
		return false
	}
}

// TestMatchTokens compares the matcher with the plain one where stars are many
// and letters few.
func TestMatchTokens(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "/", "*", "**", "**/", "/**/", `**\/`, "?", "[a]", "ab"})
	char := rapid.SampledFrom([]string{"a", "b", "/"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := "*" + strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pattern"), "")
		text := strings.Join(rapid.SliceOfN(char, 0, 12).Draw(t, "text"), "")
		tokens, ok := compile(pattern)
		if !ok {
			t.Fatalf("%q does not compile", pattern)
		}
		if got, want := matchTokens(tokens, text), plainMatch(tokens, text); got != want {
			t.Fatalf("pattern %q, text %q: %v, want %v", pattern, text, got, want)
		}
	})
}

// FuzzPush feeds any bytes as a pattern file and as a path. Nothing may panic,
// a rule must agree with the plain matcher, and the last rule that matches
// must decide.
func FuzzPush(f *testing.F) {
	f.Add([]byte(defaults), "a/.DS_Store", false)
	f.Add([]byte("*.o\n!a/**/x.o\n[!a-c]\\*/\r\n"), "a/b/x.o", true)
	f.Add([]byte("\xef\xbb\xbf/a b\\ \n[[:alpha:]-\\]]x\n**/**/a*b?\n"), "\xff\n", false)
	f.Fuzz(func(t *testing.T, contents []byte, path string, isDir bool) {
		if len(path) > 16 || len(contents) > 200 {
			return // the plain matcher takes exponential time
		}
		s := (&Stack{}).Push("", contents)
		name := path[strings.LastIndexByte(path, '/')+1:]
		want := false
		for _, r := range s.rules {
			text := name
			if r.anchored {
				text = path
			}
			matched := strings.HasPrefix(text, r.prefix) && plainMatch(r.glob, text[min(len(r.prefix), len(text)):])
			if r.suffix {
				matched = strings.HasSuffix(name, r.prefix)
			}
			if matched != r.match(path, name) {
				t.Fatalf("rule %+v, path %q: %v, want %v", r, path, !matched, matched)
			}
			if matched && (isDir || !r.dirOnly) {
				want = !r.negated
			}
		}
		if got := s.Ignored(path, isDir); got != want {
			t.Fatalf("%q: Ignored(%q) = %v, want %v", contents, path, got, want)
		}
		if nested := (&Stack{}).Push("dir", contents); nested.Ignored("dir/"+path, isDir) != want || nested.Ignored("dire/"+path, isDir) {
			t.Fatalf("%q: the same file in a directory says something else about %q", contents, path)
		}
	})
}
