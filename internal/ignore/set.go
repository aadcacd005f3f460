package ignore

import "strings"

// classes are the POSIX names inside brackets, for ASCII as git has them: space
// is blank, tab, newline and carriage return only.
var classes = map[string]func(c byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < 0x20 || c == 0x7f },
	"digit":  isDigit,
	"graph":  isGraph,
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"print":  func(c byte) bool { return isGraph(c) || c == ' ' },
	"punct":  func(c byte) bool { return isGraph(c) && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return strings.IndexByte(" \t\n\r", c) >= 0 },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isGraph(c byte) bool { return 0x20 < c && c < 0x7f }

// compileSet reads a bracket expression whose "[" stands before i and returns
// the index behind its "]". A "]" that comes first is an ordinary member, a
// backslash keeps the next byte from being special, "!" and "^" negate.
func compileSet(pattern string, i int) (set *byteSet, next int, ok bool) {
	p := setParser{pattern: pattern, at: i}
	negated := false
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		negated = true
		p.at++
	}
	for first := true; ; first = false {
		if p.at >= len(pattern) {
			return nil, 0, false
		}
		if pattern[p.at] == ']' && !first {
			break
		}
		if !p.member() {
			return nil, 0, false
		}
	}
	if negated {
		for w := range p.set {
			p.set[w] = ^p.set[w]
		}
	}
	p.set.drop('/')
	return &p.set, p.at + 1, true
}

// setParser is the state between the members of a bracket expression.
type setParser struct {
	pattern string
	at      int
	set     byteSet
	low     byte // the member before, which a "-" makes a range; 0: none
}

// member reads one member: a byte, the end of a range, or a class.
func (p *setParser) member() bool {
	rest := p.pattern[p.at:]
	switch {
	case rest[0] == '\\':
		if len(rest) < 2 {
			return false
		}
		p.single(rest[1], 2)
	case rest[0] == '-' && p.low != 0 && len(rest) > 1 && rest[1] != ']':
		return p.rangeEnd(rest[1:])
	case strings.HasPrefix(rest, "[:"):
		return p.class(rest)
	default:
		p.single(rest[0], 1)
	}
	return true
}

// single adds one byte that took n bytes of the pattern.
func (p *setParser) single(c byte, n int) {
	p.set.add(c)
	p.low = c
	p.at += n
}

// rangeEnd adds the range from the member before to the byte at the start of
// rest, which follows a "-".
func (p *setParser) rangeEnd(rest string) bool {
	n := 1
	if rest[0] == '\\' {
		if len(rest) < 2 {
			return false
		}
		n = 2
	}
	p.set.addRange(p.low, rest[n-1])
	p.low = 0
	p.at += 1 + n
	return true
}

// class adds the bytes of a "[:name:]" that rest begins with. Where no ":]"
// ends it, the "[" is an ordinary member.
func (p *setParser) class(rest string) bool {
	end := strings.IndexByte(rest[2:], ']')
	if end < 0 {
		return false
	}
	if end == 0 || rest[2+end-1] != ':' {
		p.single('[', 1)
		return true
	}
	is := classes[rest[2:2+end-1]]
	if is == nil {
		return false
	}
	for c := range 128 {
		if is(byte(c)) {
			p.set.add(byte(c))
		}
	}
	p.low = 0
	p.at += 2 + end + 1
	return true
}
