package ignore

import "strings"

// tokenKind says what one piece of a compiled pattern matches.
type tokenKind uint8

const (
	literal  tokenKind = iota // exactly text
	oneOf                     // one byte of set; sets never hold '/'
	star                      // any bytes but '/'
	deepStar                  // any bytes
	deepDirs                  // "**/": nothing, or any bytes that end in '/'
)

// token is one piece of a compiled pattern.
type token struct {
	kind tokenKind
	text string
	set  *byteSet
}

// byteSet holds the bytes that a "?" or a bracket expression matches.
type byteSet [4]uint64

func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

// addRange adds lo to hi inclusive, nothing when hi is smaller.
func (s *byteSet) addRange(lo, hi byte) {
	for c := int(lo); c <= int(hi); c++ {
		s.add(byte(c))
	}
}

// compile turns a pattern, which begins at its first special character, into
// tokens. ok is false for a pattern that can match nothing: an unclosed
// bracket, an unknown class, a backslash at the end.
//
// "**" reaches over slashes only where it stands for whole components: between
// a slash or the beginning and a slash or the end. Because git compares the
// plain text before the first special character on its own, "the beginning" is
// the first special character: "a/b**" matches "a/bc/d". Names have no slash,
// so for patterns matched against names alone the difference does not show.
func compile(pattern string) (tokens []token, ok bool) {
	var text []byte
	flush := func() {
		if len(text) > 0 {
			tokens = append(tokens, token{kind: literal, text: string(text)})
			text = nil
		}
	}
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; c {
		case '*':
			flush()
			t, next := compileStar(pattern, i)
			tokens, i = append(tokens, t), next
		case '?':
			flush()
			tokens = append(tokens, token{kind: oneOf, set: &anyByte})
			i++
		case '[':
			flush()
			set, next, ok := compileSet(pattern, i+1)
			if !ok {
				return nil, false
			}
			tokens, i = append(tokens, token{kind: oneOf, set: set}), next
		case '\\':
			if i+1 == len(pattern) {
				return nil, false
			}
			text = append(text, pattern[i+1])
			i += 2
		default:
			text = append(text, c)
			i++
		}
	}
	flush()
	return tokens, true
}

// anyByte is the set of "?".
var anyByte = func() (s byteSet) {
	s.addRange(0, 255)
	s.drop('/')
	return s
}()

func (s *byteSet) drop(c byte) { s[c>>6] &^= 1 << (c & 63) }

// compileStar reads the run of stars at i and returns the index behind it.
func compileStar(pattern string, i int) (t token, next int) {
	end := i
	for end < len(pattern) && pattern[end] == '*' {
		end++
	}
	rest := pattern[end:]
	switch {
	case end-i == 1 || i > 0 && pattern[i-1] != '/':
		return token{kind: star}, end
	case strings.HasPrefix(rest, "/"):
		return token{kind: deepDirs}, end + 1
	case rest == "" || strings.HasPrefix(rest, `\/`):
		return token{kind: deepStar}, end
	}
	return token{kind: star}, end
}

// matchTokens tells whether the tokens match all of text. It remembers one
// star and one deep star to go back to: an earlier one never has to be tried
// again, because the later one can swallow whatever the earlier one would
// have, so the work is bounded by len(tokens) * len(text)^2 for any pattern.
func matchTokens(tokens []token, text string) bool {
	const none = -1
	ti, xi := 0, 0
	starAt, starText := none, 0
	deepAt, deepText := none, 0
	for {
		if ti == len(tokens) {
			if xi == len(text) {
				return true
			}
		} else {
			switch t := &tokens[ti]; t.kind {
			case literal:
				if strings.HasPrefix(text[xi:], t.text) {
					ti, xi = ti+1, xi+len(t.text)
					continue
				}
			case oneOf:
				if xi < len(text) && t.set.has(text[xi]) {
					ti, xi = ti+1, xi+1
					continue
				}
			case star:
				starAt, starText = ti, xi
				ti++
				continue
			default:
				deepAt, deepText, starAt = ti, xi, none
				ti++
				continue
			}
		}
		switch {
		case starAt != none && starText < len(text) && text[starText] != '/':
			starText++
			ti, xi = starAt+1, starText
		case deepAt != none:
			skip := 1
			if tokens[deepAt].kind == deepDirs {
				skip = strings.IndexByte(text[deepText:], '/') + 1
			}
			if skip == 0 || deepText+skip > len(text) {
				return false
			}
			deepText += skip
			starAt = none
			ti, xi = deepAt+1, deepText
		default:
			return false
		}
	}
}
